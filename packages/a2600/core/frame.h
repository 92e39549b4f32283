// Frames: inputs, one frame of the machine, power-on and reset.
#pragma once

#include "cpu.h"
#include "rules.h"

namespace a2600 {

constexpr u64 MAGIC = 0x3130303632610000 + sizeof(State);  // layout of a saved state
constexpr u32 BOOT_SEED = 4753849;

inline void seed(Generator& g, u32 value) {
    g.state[0] = value;
    for (u32 i = 1; i < 624; i++) g.state[i] = 1812433253u * (g.state[i - 1] ^ g.state[i - 1] >> 30) + i;
    g.index = 624;
}

inline u32 draw(Generator& g) {
    if (g.index >= 624) {
        for (u32 i = 0; i < 624; i++) {
            u32 bits = (g.state[i] & 0x80000000) | (g.state[(i + 1) % 624] & 0x7fffffff);
            g.state[i] = g.state[(i + 397) % 624] ^ bits >> 1 ^ (bits & 1 ? 0x9908b0df : 0);
        }
        g.index = 0;
    }
    u32 value = g.state[g.index++];
    value ^= value >> 11;
    value ^= value << 7 & 0x9d2c5680;
    value ^= value << 15 & 0xefc60000;
    return value ^ value >> 18;
}

constexpr u8 RESET_SWITCH = 1, SELECT_SWITCH = 2;

inline void set_inputs(const Game& game, State& state, u8 held, u8 switches) {
    const Settings& settings = game.settings;
    Play& play = state.play;
    u8 port = 0xff;
    play.fire[0] = play.fire[1] = 0;
    if (settings.paddle >= 0) {
        i32 turn = (held & LEFT ? PADDLE_SPEED : 0) - (held & RIGHT ? PADDLE_SPEED : 0);
        i32 paddle = play.paddle + turn;
        play.paddle = paddle < PADDLE_MIN ? PADDLE_MIN : paddle > PADDLE_MAX ? PADDLE_MAX : paddle;
        if (held & FIRE) port &= u8(~(1u << settings.fire_bit));
    } else {
        u32 directions = held & 15u;
        port &= u8(~(settings.right_port ? directions : directions << 4));
        play.fire[settings.right_port] = held & FIRE;
    }
    state.riot.port_a = port;
    state.riot.port_b = u8(0x3f & ~switches);
}

inline i32 later(i32 time, i32 passed) { return time < -(1 << 29) ? time : time - passed; }

inline void run_machine(Machine& machine) {
    switch (machine.picture.game->kind) {
    case Kind::Flat: run<Kind::Flat>(&machine, nullptr); break;
    case Kind::F8: run<Kind::F8>(&machine, nullptr); break;
    case Kind::F6: run<Kind::F6>(&machine, nullptr); break;
    case Kind::E0: run<Kind::E0>(&machine, nullptr); break;
    default: run<Kind::FE>(&machine, nullptr); break;
    }
}

constexpr i32 MAX_PARTIAL = 1 << 26;  // cycles of a frame that does not end, before its times are shifted all the same

// One frame with the inputs as they are. If the processor ends none within MAX_INSTRUCTIONS, the next call continues it.
inline void run_frame(const Game& game, Console& console, const u8* shade, bool drawn) {
    State& state = console.state;
    Tia& t = state.tia;
    if (!state.play.partial) {
        state.play.parity ^= 1;
        begin_picture(t, game.settings.first_line);
    }
    Machine machine = {state, {&game, drawn ? console.screen[state.play.parity] : nullptr, shade}, false};
    if (!state.cpu.jammed) {
        struct { Cpu cpu; Riot riot; Tia tia; Play play; } before = {state.cpu, state.riot, t, state.play};
        run_machine(machine);
        if (UNLIKELY(state.cpu.cycles > before.cpu.cycles + MAX_CYCLES && !t.frame_over)) {
            state.cpu = before.cpu, state.riot = before.riot, t = before.tia, state.play = before.play;
            run<Kind::Any>(&machine, nullptr);
        }
    }
    state.play.partial = !t.frame_over;
    if (state.play.partial && state.cpu.cycles < MAX_PARTIAL) return;
    i32 cycles = state.cpu.cycles, clocks = cycles * 3;
    state.cpu.cycles = 0;
    t.origin = -clock_of_line(t, clocks);
    if (t.vsync_end != NEVER) t.vsync_end = later(t.vsync_end, clocks);
    t.last_hmove = later(t.last_hmove, clocks);
    t.dump_end = later(t.dump_end, cycles);
    state.riot.timer_set = later(state.riot.timer_set, cycles);
    state.riot.expiry_read = later(state.riot.expiry_read, cycles);
}

// A frame of play: inputs, the machine, the rules.
inline void play_frame(const Game& game, Console& console, const u8* shade, u8 held, bool drawn) {
    set_inputs(game, console.state, held, 0);
    run_frame(game, console, shade, drawn);
    console.state.play.frames++;
    apply_rules(game, console.state.play, console.state.riot.ram);
}

// Reset: the processor starts at its vector, RAM stays as it is.
inline void reset_console(const Game& game, Console& console, const u8* shade) {
    State& state = console.state;
    u32 interval = 25 + draw(state.boot) % 75;
    memset(&state.tia, 0, sizeof state.tia);
    state.tia.vsync_end = NEVER;
    state.tia.last_hmove = -NEVER;
    state.tia.dirty = ALL_OBJECTS;
    set_timer(state.riot, u8(interval), 6, 0);
    state.riot.ddr_a = state.riot.ddr_b = 0;
    reset_banks(game, state.play);
    state.cpu = Cpu{};
    state.cpu.s = 0xff;
    state.cpu.nz = 1;
    state.cpu.other = BREAK;
    state.cpu.pc = u16(*bank_bytes(game, state.play, 0xffc) | *bank_bytes(game, state.play, 0xffd) << 8);
    state.play.partial = 0;
    state.play.paddle = PADDLE_CENTRE;
    memset(console.screen, 0, sizeof console.screen);
    auto frames = [&](int count, u8 held, u8 switches) {
        for (int i = 0; i < count; i++) {
            set_inputs(game, state, held, switches);
            run_frame(game, console, shade, true);
        }
    };
    for (const i32* row : game.settings.reset) {
        for (int time = 0; time < row[4]; time++) {
            frames(row[2], ACTIONS[row[0]], u8(row[1]));
            frames(row[3], 0, 0);
        }
    }
    state.play.frames = game.settings.setup_frames;
    state.play.last_action = 0;
    reset_rules(game, state.play, state.riot.ram);
}

// Power-on with the cartridge: RAM from the boot generator, then a reset.
inline void load_game(const Game& game, Console& console, const u8* shade) {
    State& state = console.state;
    memset(&console, 0, sizeof console);
    state.magic = MAGIC;
    state.game = game.settings.id;
    seed(state.boot, BOOT_SEED);
    for (u8& byte : state.riot.ram) byte = u8(draw(state.boot));
    for (int i = 0; i < 3; i++) draw(state.boot);
    reset_console(game, console, shade);
}

}  // namespace a2600
