// Environments: one console with what an agent sees of it. Steps follow ale-py's vector environment.
#pragma once

#include "frame.h"
#include "observe.h"

namespace a2600 {

struct Options {
    i32 frame_skip, stack, height, width, channels, max_pool;
    i32 noop_max, max_frames, fire_reset, episodic_life, life_loss_info, clip, autoreset;  // 0 next step, 1 same step, 2 off
    i32 padding;
    double sticky;
};

struct Result {
    i32 reward, lives, frames, episode_frames;
    u8 terminated, truncated, reset, padding;
};

constexpr u64 ENV_MAGIC = 0x3176653030363261;

// Everything of an environment, followed in memory by its stack of observations.
struct Env {
    u64 magic, layout;
    State initial;          // when the episode began
    Generator starts;       // draws the no-ops
    i32 has_initial, pending_reset, frames, all_frames, lives, newest;
    i64 stale[2];           // clocks of a picture that undrawn frames have passed
    Console console;
    u8 pooled[3 * SCREEN];  // maximum of the last two pictures
};

// What the environments of a pool share.
struct Shared {
    const Game* game;
    Options options;
    u8 shade[256];          // colour → what a picture holds: grey, or the colour itself
    u8 rgb[256][3];
    Small small;
    Axis rows, columns;
    bool fast;              // 84×84 grey
    bool has_fire;
    std::vector<u8> actions;

    Shared(const Game* game_, const Options& o) : game(game_), options(o), rows(HEIGHT, o.height), columns(WIDTH, o.width) {}

    size_t frame_size() const { return size_t(options.height) * size_t(options.width) * size_t(options.channels); }
    size_t env_size() const { return (sizeof(Env) + frame_size() * size_t(options.stack) + 63) / 64 * 64; }
};

inline u8* history(Env& env) { return reinterpret_cast<u8*>(&env + 1); }

inline i64 progress(const Tia& t) {
    return t.drawn == NEVER ? i64(HEIGHT) * LINE : i64(t.line) * LINE + (t.drawn - t.line_start);
}

// A frame whose action may be repeated by sticky actions.
inline void act(const Shared& shared, Env& env, u8 action, bool drawn) {
    State& state = env.console.state;
    play_frame(*shared.game, env.console, shared.shade, ACTIONS[action], drawn);
    i64 done = progress(state.tia), &stale = env.stale[state.play.parity];
    if (!drawn) stale = stale > done ? stale : done;
    else if (done >= stale) stale = 0;
    env.all_frames++;
}

inline u8 sticky_action(const Shared& shared, Env& env, u8 action) {
    State& state = env.console.state;
    if (shared.options.sticky > 0) {
        if (draw(state.sticky) * (1.0 / 4294967296.0) >= shared.options.sticky) state.play.last_action = action;
        draw(state.sticky);  // ale-py draws twice a frame
        return u8(state.play.last_action);
    }
    return action;
}

// Maximum with the newest picture; `fresh`: take it as it is.
inline void pool_picture(const Shared& shared, Env& env, const u8* picture, bool fresh) {
    if (shared.options.channels == 1) {
        if (fresh) memcpy(env.pooled, picture, SCREEN);
        else for (int i = 0; i < SCREEN; i++) env.pooled[i] = env.pooled[i] > picture[i] ? env.pooled[i] : picture[i];
        return;
    }
    for (int i = 0; i < SCREEN; i++) {
        for (int c = 0; c < 3; c++) {
            u8 value = shared.rgb[picture[i]][c], &pooled = env.pooled[3 * i + c];
            pooled = fresh || value > pooled ? value : pooled;
        }
    }
}

inline void max_of_pictures(const Shared& shared, Env& env) {
    const u8 *a = env.console.screen[0], *b = env.console.screen[1];
    if (shared.options.channels == 1) {
        for (int i = 0; i < SCREEN; i++) env.pooled[i] = a[i] > b[i] ? a[i] : b[i];
    } else {
        pool_picture(shared, env, a, true);
        pool_picture(shared, env, b, false);
    }
}

// Add the pooled picture to the stack.
inline void observe(const Shared& shared, Env& env) {
    env.newest = (env.newest + 1) % shared.options.stack;
    u8* out = history(env) + size_t(env.newest) * shared.frame_size();
    if (shared.fast) shared.small.resize(env.pooled, out);
    else if (shared.options.height == HEIGHT && shared.options.width == WIDTH) memcpy(out, env.pooled, shared.frame_size());
    else resize(env.pooled, shared.options.channels, shared.rows, shared.columns, out);
}

// The stack, oldest first.
inline void write_stack(const Shared& shared, Env& env, u8* out) {
    size_t size = shared.frame_size(), oldest = size_t(env.newest + 1) % size_t(shared.options.stack);
    size_t first = (size_t(shared.options.stack) - oldest) * size;
    memcpy(out, history(env) + oldest * size, first);
    memcpy(out + first, history(env), oldest * size);
}

// A number in [0, bound), as C++'s standard library draws it.
inline u32 draw_below(Generator& g, u32 bound) {
    for (;;) {
        u64 product = u64(draw(g)) * bound;
        if (u32(product) >= (0u - bound) % bound) return u32(product >> 32);
    }
}

// Begin an episode: without sticky actions from where the last one began, then reset, FIRE, no-ops.
inline void begin_episode(const Shared& shared, Env& env) {
    const Options& o = shared.options;
    State& state = env.console.state;
    bool sticky = o.sticky > 0;
    if (env.has_initial && !sticky) state = env.initial;
    auto restart = [&] {
        reset_console(*shared.game, env.console, shared.shade);
        env.all_frames += shared.game->settings.setup_frames;
    };
    restart();
    env.stale[0] = env.stale[1] = 0;
    bool fire = o.fire_reset && shared.has_fire;
    i32 frames = o.noop_max > 0 ? i32(draw_below(env.starts, u32(o.noop_max))) - fire : -i32(fire);
    if (fire) act(shared, env, sticky_action(shared, env, 1), true);
    for (i32 i = 0; i < frames; i++) {
        act(shared, env, sticky_action(shared, env, 0), true);
        if (state.play.over) restart();
    }
    env.initial = state;
    env.has_initial = 1;
    env.pending_reset = 0;
    env.frames = 0;
    env.lives = state.play.lives;
    memset(history(env), 0, shared.frame_size() * size_t(o.stack));
    pool_picture(shared, env, env.console.screen[state.play.parity], true);
    observe(shared, env);
}

inline void report(Env& env, Result& result) {
    result.lives = env.console.state.play.lives;
    result.frames = env.all_frames;
    result.episode_frames = env.console.state.play.frames;
}

// Start over; a seed of at least 0 also loads the cartridge again.
inline void reset_env(const Shared& shared, Env& env, i64 new_seed, u8* out, Result& result) {
    if (new_seed >= 0) {
        load_game(*shared.game, env.console, shared.shade);
        seed(env.starts, u32(new_seed));
        seed(env.console.state.sticky, u32(new_seed));
        env.has_initial = 0;
        env.all_frames = shared.game->settings.setup_frames;
    }
    begin_episode(shared, env);
    write_stack(shared, env, out);
    result = Result{};
    result.reset = 1;
    report(env, result);
}

struct Snapshot {
    Cpu cpu;
    Riot riot;
    Tia tia;
    Play play;
};

// One step: `frame_skip` frames of an action, the last two of them drawn.
inline void step_env(const Shared& shared, Env& env, u8 action, u8* out, u8* final_out, Result& result) {
    const Options& o = shared.options;
    State& state = env.console.state;
    result = Result{};
    if (env.pending_reset && o.autoreset == 0) {
        begin_episode(shared, env);
        write_stack(shared, env, out);
        result.reset = 1;
        report(env, result);
        return;
    }
    Snapshot before = {state.cpu, state.riot, state.tia, state.play};
    u8 actions[256];
    i32 reward = 0, played = 0, all_frames = env.all_frames;
    bool over = false, lost = false, ends = false;
    auto play = [&](bool all, bool again) {
        reward = played = 0;
        for (i32 left = o.frame_skip - 1; left >= 0 && !ends; left--) {
            if (!again) actions[played & 255] = sticky_action(shared, env, action);
            act(shared, env, actions[played & 255], all || left < 2);
            played++;
            reward = i32(u32(reward) + u32(state.play.reward));  // hostile RAM may overflow, and wraps
            over = state.play.over;
            lost = (o.episodic_life || o.life_loss_info) && state.play.lives < env.lives;
            ends = over || (lost && o.episodic_life) || env.frames + played >= o.max_frames;
            if (ends) return left;
        }
        return -1;
    };
    i32 left = play(o.frame_skip > 256, false);
    if (UNLIKELY(env.stale[0] | env.stale[1]) && left < 1) {
        i32 last_action = state.play.last_action;  // a short frame left old lines: draw all frames
        state.cpu = before.cpu, state.riot = before.riot, state.tia = before.tia, state.play = before.play;
        env.all_frames = all_frames;
        env.stale[0] = env.stale[1] = 0;
        ends = false;
        left = play(true, true);
        state.play.last_action = last_action;
        env.stale[0] = env.stale[1] = 0;
    }
    env.frames += played;
    if (left < 0) {
        if (o.max_pool && o.frame_skip > 1) max_of_pictures(shared, env);
        else pool_picture(shared, env, env.console.screen[state.play.parity], true);
    } else if (left == 0 && o.max_pool && o.frame_skip > 1) {
        pool_picture(shared, env, env.console.screen[state.play.parity ^ 1], false);
    }
    observe(shared, env);
    env.lives = state.play.lives;
    result.reward = o.clip ? (reward > 0) - (reward < 0) : reward;
    result.terminated = over || lost;
    result.truncated = ends && !result.terminated;
    if ((result.terminated || result.truncated) && o.autoreset == 1) write_stack(shared, env, final_out);
    if (ends) {
        if (o.autoreset == 1) begin_episode(shared, env);
        else env.pending_reset = 1;
    }
    write_stack(shared, env, out);
    report(env, result);
}

}  // namespace a2600
