// A game: its cartridge, decoded once, and what sets it apart from others. Immutable and shared by its consoles.
#pragma once

#include <memory>

#include "console.h"

namespace a2600 {

enum class Kind : i32 { Flat, F8, F6, E0, FE, Any };  // Any: code that asks the game

// A decoded instruction. One exists for each byte of the cartridge, as if an instruction began there.
struct Op {
    i32 code;    // where its handler is, relative to the first
    u8 low, high;  // operand
    u16 target;  // of branches: low 12 bits
};

// The rules of reward, lives and end: programs for a stack machine, see rules.h.
struct Rules {
    static constexpr int MAX = 512;
    i32 code[MAX];
    i32 start[5];  // started, score, over, reward, lives; -1: none
    i32 lives_at_reset, started_at_reset;
};

struct Settings {
    u64 id;
    i32 kind, size;
    i32 first_line;      // of the picture within the frame
    i32 comb;            // HMOVE blanks pixels
    i32 paddle;          // -1: joystick, else which paddle is played
    i32 fire_bit;        // of a paddle, in SWCHA
    i32 right_port;      // joystick in the right port
    i32 setup_frames;    // of a reset that count as played
    i32 reset[10][5];    // what follows the processor's start: action, switches, frames, frames without, times
};

struct Game {
    Settings settings;
    Rules rules;
    bool comb;
    Kind kind;
    i32 banks;                   // of `bank_size` bytes
    u8 rom[16384 + 8];
    std::unique_ptr<Op[]> ops;   // for each bank: its bytes and four more
};

constexpr i32 PADDLE_MIN = 27450, PADDLE_MAX = 790196, PADDLE_CENTRE = 408823, PADDLE_SPEED = 23000;

// What a paddle port reads: ohms, 0 for none, -1 where a joystick is connected.
inline i32 paddle_resistance(const Game& game, const Play& play, u32 port) {
    if (game.settings.paddle < 0) return -1;
    if (port >= 2) return 0;
    return i32(port) == game.settings.paddle ? play.paddle : PADDLE_CENTRE;
}

// Bits of an action: up, down, left, right, fire.
constexpr u8 UP = 1, DOWN = 2, LEFT = 4, RIGHT = 8, FIRE = 16;
constexpr u8 ACTIONS[18] = {0, FIRE, UP, RIGHT, LEFT, DOWN, UP | RIGHT, UP | LEFT, DOWN | RIGHT, DOWN | LEFT, UP | FIRE,
                            RIGHT | FIRE, LEFT | FIRE, DOWN | FIRE, UP | RIGHT | FIRE, UP | LEFT | FIRE,
                            DOWN | RIGHT | FIRE, DOWN | LEFT | FIRE};

}  // namespace a2600
