// The console: one flat block of memory for everything that changes, and the immutable cartridge it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NEVER_INLINE __attribute__((noinline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace a2600 {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;

constexpr int WIDTH = 160, HEIGHT = 210, SCREEN = WIDTH * HEIGHT;
constexpr i32 LINE = 228;   // colour clocks of a line: 68 of blanking, 160 pixels
constexpr i32 BLANK = 68;
constexpr i32 NEVER = 1 << 28;

// 6507. The flags N and Z are kept as the value they were computed from: Z if its low byte is 0, N if bit 7 or 8 is set.
struct Cpu {
    i32 cycles;  // since the beginning of the frame
    u16 pc, nz;
    u8 a, x, y, s;
    u8 carry, overflow;  // 0 or 1
    u8 other;            // bits B, D, I of the status register as they are pushed
    u8 jammed;
};

// RIOT (6532): RAM, timer, ports. Times are cycles from the beginning of the frame.
struct Riot {
    u8 ram[128];
    i32 timer_set;     // when the timer was written
    i32 expiry_read;   // when it was first read after expiry
    u8 timer, shift, expiry_seen;
    u8 port_a, port_b, ddr_a, ddr_b;
};

// The six objects that TIA draws, in the order of its collision logic.
enum Object { P0, M0, P1, M1, BL, PF, OBJECTS };

// One bit a pixel, pixel 0 in bit 0; bits above 159 are 0.
struct Mask {
    u64 word[4];
};

// TIA: the picture chip. Times are colour clocks from the beginning of the frame.
struct Tia {
    Mask mask[OBJECTS];  // what each object covers on the present line, valid unless `dirty`
    i32 origin;          // where line 0 begins: at most 0
    i32 drawn;           // the picture is complete up to this clock
    i32 line_start;      // where the line that is drawn begins
    i32 line;            // its number on the screen, 0 to 210
    i32 last_hmove;
    i32 vsync_end;       // from here on clearing VSYNC ends the frame
    i32 dump_end;        // cycle at which the paddles' capacitors began to load
    u16 collisions;      // 2 bits for each of the 8 registers
    u8 dirty;            // objects whose masks are stale
    u8 shown;            // objects with a mask that is not empty
    u8 same;             // nothing changed since a whole line was done
    u8 comb, mirror_now, frame_over;
    u8 vsync, vblank;
    u8 color[4];         // player 0, player 1, playfield, background
    u8 nusiz[2], ctrlpf, refp[2], pf[3];
    u8 grp[2], old_grp[2], vdelp[2], enam[2], resmp[2];
    u8 enabl, old_enabl, vdelbl;
    u8 motion[5];        // HMP0, HMM0, HMP1, HMM1, HMBL
    u8 position[5];      // of P0, M0, P1, M1, BL
    u8 left_out[2];      // the first copy of a player is not drawn after RESP
};

struct Generator {  // MT19937
    u32 state[624];
    i32 index;
};

struct Play {  // what the rules of the game and the controllers remember
    u8 ram_before[128];
    i32 score, lives, started;
    i32 over, reward;
    i32 paddle;          // resistance of the paddle that is played
    u8 fire[2];          // the buttons of the joysticks
    i32 parity;          // which of the two screens the frame goes to
    i32 partial;         // the frame is not over
    i32 frames;          // since the reset
    i32 last_action;     // for sticky actions
    u8 bank[4];          // of each kilobyte of the cartridge's window
};

struct State {
    u64 magic;
    u64 game;
    Cpu cpu;
    Riot riot;
    Tia tia;
    Play play;
    Generator boot;      // RAM at loading, timer at each reset
    Generator sticky;
};

struct Game;

// Everything of one console. `screen` keeps the two alternating pictures: colour numbers, or grey values.
struct Console {
    State state;
    u8 screen[2][SCREEN];
};

inline i32 bcd(i32 v) { return 10 * (v >> 4) + (v & 15); }

}  // namespace a2600
