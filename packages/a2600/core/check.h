// Saved states: everything that is used as an index or a time is in range, or the state is refused.
#pragma once

#include "env.h"

namespace a2600 {

inline bool within(i64 value, i64 low, i64 high) { return value >= low && value <= high; }

// Noted times are shifted with each frame and kept once they are below -2^29, see `later`; sums of a few fit in 32 bits.
constexpr i64 OLDEST = -(1 << 29) - 4 * i64(MAX_PARTIAL);
constexpr i64 NEWEST_CYCLE = i64(MAX_PARTIAL) + 2 * MAX_CYCLES, NEWEST_CLOCK = 3 * NEWEST_CYCLE;
constexpr i64 COUNT = 1 << 30;

inline bool valid_generator(const Generator& g) { return within(g.index, 0, 624); }

// Masks are computed again from the registers, so that a saved state cannot contradict itself.
inline void forget_masks(Tia& t) {
    memset(t.mask, 0, sizeof t.mask);
    t.dirty = ALL_OBJECTS;
    t.shown = t.same = 0;
}

inline bool check_state(const Game& game, State& state) {
    const Cpu& cpu = state.cpu;
    const Riot& riot = state.riot;
    Tia& t = state.tia;
    const Play& play = state.play;
    if (state.magic != MAGIC || state.game != game.settings.id) return false;
    if (cpu.carry > 1 || cpu.overflow > 1 || cpu.jammed > 1 || !within(cpu.cycles, 0, MAX_PARTIAL + MAX_CYCLES)) return false;
    if (cpu.other & ~(BREAK | DECIMAL | INTERRUPT)) return false;
    bool shift = riot.shift == 0 || riot.shift == 3 || riot.shift == 6 || riot.shift == 10;
    if (!shift || !within(riot.timer_set, OLDEST, NEWEST_CYCLE) || !within(riot.expiry_read, OLDEST, NEWEST_CYCLE)) return false;
    if (!within(t.origin, 1 - LINE, 0) || !within(t.line, 0, HEIGHT) || !within(t.line_start, OLDEST, NEWEST_CLOCK)) return false;
    bool drawing = t.line < HEIGHT && within(i64(t.drawn) - t.line_start, 0, LINE - 1);
    if (t.drawn != NEVER && !drawing) return false;
    if (!within(t.last_hmove, OLDEST, NEWEST_CLOCK) || !within(t.dump_end, OLDEST, NEWEST_CYCLE)) return false;
    if (t.vsync_end != NEVER && !within(t.vsync_end, OLDEST, NEWEST_CLOCK)) return false;
    for (u8 position : t.position) {
        if (position >= WIDTH) return false;
    }
    for (u8 bank : play.bank) {
        if (bank >= game.banks) return false;
    }
    if (game.kind == Kind::E0 && play.bank[3] != 7) return false;
    if (!within(play.parity, 0, 1) || !within(play.paddle, PADDLE_MIN, PADDLE_MAX)) return false;
    if (!within(play.last_action, 0, 17) || !within(play.frames, 0, COUNT) || !within(play.partial, 0, 1)) return false;
    if (!valid_generator(state.boot) || !valid_generator(state.sticky)) return false;
    forget_masks(t);
    return true;
}

// A state belongs to environments of the same game, options and version.
inline u64 layout_of(const Shared& shared) {
    u64 hash = shared.game->settings.id ^ MAGIC;
    const Options& o = shared.options;
    for (i32 value : {o.stack, o.height, o.width, o.channels}) hash = (hash ^ u64(value)) * 1099511628211u;
    return hash;
}

inline bool check_env(const Shared& shared, Env& env) {
    if (env.magic != ENV_MAGIC || env.layout != layout_of(shared)) return false;
    if (!within(env.newest, 0, shared.options.stack - 1) || !within(env.frames, 0, COUNT)) return false;
    if (!within(env.all_frames, 0, COUNT) || !valid_generator(env.starts)) return false;
    if (!check_state(*shared.game, env.console.state)) return false;
    return !env.has_initial || check_state(*shared.game, env.initial);
}

}  // namespace a2600
