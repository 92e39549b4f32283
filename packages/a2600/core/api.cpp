// The C interface, as the Python package loads it. Pointers are owned by the caller, except what `..._new` returns.
#include <new>

#include "check.h"
#include "pool.h"

using namespace a2600;

namespace {

const u8* plain_shades() {
    static const struct Shades {
        u8 value[256];
        Shades() { for (int i = 0; i < 256; i++) value[i] = u8(i); }
    } shades;
    return shades.value;
}

}  // namespace

#define A2600_API extern "C" __attribute__((visibility("default")))

// What instructions this build needs and whether the processor has them: 0 any, 3 x86-64-v3, 4 x86-64-v4.
A2600_API i32 a2600_level() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) return 4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma")) return 3;
#endif
    return 0;
}

// Null if the settings or the rules are not safe to run. `rom` has settings->size bytes.
A2600_API Game* a2600_game_new(const u8* rom, const Settings* settings, const Rules* rules) {
    constexpr i32 BANKS[5] = {1, 2, 4, 8, 2}, SIZES[5] = {4096, 8192, 16384, 8192, 8192};
    if (!within(settings->kind, 0, 4)) return nullptr;
    i32 size = SIZES[settings->kind];
    if (settings->size != size && !(settings->kind == 0 && settings->size == 2048)) return nullptr;
    if (!within(settings->first_line, 0, 100) || !within(settings->paddle, -1, 1)) return nullptr;
    if (!within(settings->fire_bit, 0, 7) || !within(settings->right_port, 0, 1)) return nullptr;
    for (const i32* row : settings->reset) {
        if (!within(row[0], 0, 17) || !within(row[1], 0, 3)) return nullptr;
        for (int i = 2; i < 5; i++) if (!within(row[i], 0, 1000)) return nullptr;
    }
    for (int i = 0; i < 5; i++) {
        if (rules->start[i] < 0 ? i != 0 : !valid_rule(*rules, rules->start[i])) return nullptr;
    }
    Game* game = new (std::nothrow) Game();
    if (!game) return nullptr;
    game->settings = *settings;
    game->rules = *rules;
    game->kind = Kind(settings->kind);
    game->comb = settings->comb != 0;
    game->banks = BANKS[settings->kind];
    for (i32 i = 0; i < size; i++) game->rom[i] = rom[i % settings->size];
    switch (game->kind) {
    case Kind::Flat: decode_game(*game, labels_of<Kind::Flat>()); break;
    case Kind::F8: decode_game(*game, labels_of<Kind::F8>()); break;
    case Kind::F6: decode_game(*game, labels_of<Kind::F6>()); break;
    case Kind::E0: decode_game(*game, labels_of<Kind::E0>()); break;
    default: decode_game(*game, labels_of<Kind::FE>()); break;
    }
    return game;
}

A2600_API void a2600_game_free(Game* game) { delete game; }

// A single console, frame by frame.
A2600_API size_t a2600_console_size() { return sizeof(Console); }
A2600_API void a2600_load(const Game* game, Console* console) { load_game(*game, *console, plain_shades()); }
A2600_API void a2600_reset(const Game* game, Console* console) { reset_console(*game, *console, plain_shades()); }
A2600_API void a2600_act(const Game* game, Console* console, i32 action, i32 drawn) {
    play_frame(*game, *console, plain_shades(), ACTIONS[action], drawn != 0);
}
A2600_API const u8* a2600_ram(const Console* console) { return console->state.riot.ram; }
A2600_API const u8* a2600_screen(const Console* console) { return console->screen[console->state.play.parity]; }
A2600_API void a2600_signals(const Console* console, i32* out) {
    const Play& play = console->state.play;
    out[0] = play.reward, out[1] = play.lives, out[2] = play.over;
}

// Many environments. `shades`: 256 greys; `rgb`: 256 colours; `actions`: the number of each action of the agent.
A2600_API Pool* a2600_pool_new(const Game* game, const Options* options, const u8* shades, const u8* rgb, const i32* actions,
                               i32 num_actions, i32 num_envs, i32 threads) try {
    Pool* pool = new Pool(game, *options, num_envs, threads);
    Shared& shared = pool->shared;
    bool grey = options->channels == 1;
    memcpy(shared.shade, grey ? shades : plain_shades(), 256);
    memcpy(shared.rgb, rgb, sizeof shared.rgb);
    shared.fast = grey && options->height == SMALL && options->width == SMALL;
    shared.has_fire = false;
    for (i32 i = 0; i < num_actions; i++) {
        shared.actions.push_back(u8(actions[i]));
        shared.has_fire |= actions[i] == 1;
    }
    for (i32 i = 0; i < num_envs; i++) {
        pool->env(i).magic = ENV_MAGIC;
        pool->env(i).layout = layout_of(shared);
    }
    return pool;
} catch (...) {
    return nullptr;
}
A2600_API void a2600_pool_free(Pool* pool) { delete pool; }
A2600_API void a2600_pool_bind(Pool* pool, u8* obs, u8* final_obs, Result* results) {
    pool->obs = obs, pool->final_obs = final_obs, pool->results = results;
}
A2600_API void a2600_pool_send(Pool* pool, const Command* commands, i32 n) { pool->send(commands, n); }
A2600_API i32 a2600_pool_receive(Pool* pool, i32* slots, i32 least, i32 most, double seconds) {
    return pool->receive(slots, least, most, seconds);
}
A2600_API size_t a2600_pool_env_size(const Pool* pool) { return pool->shared.env_size(); }
A2600_API void a2600_pool_save(Pool* pool, i32 slot, u8* out) {
    Env& env = pool->env(slot);
    forget_masks(env.console.state.tia);
    forget_masks(env.initial.tia);
    memcpy(out, &env, pool->shared.env_size());
}
// 0 if the state is refused; the environment is then as before. Also writes the observation.
A2600_API i32 a2600_pool_load(Pool* pool, i32 slot, const u8* from) try {
    size_t size = pool->shared.env_size();
    std::vector<u64> copy(size / 8);
    memcpy(copy.data(), from, size);
    if (!check_env(pool->shared, *reinterpret_cast<Env*>(copy.data()))) return 0;
    Env& env = pool->env(slot);
    memcpy(&env, copy.data(), size);
    write_stack(pool->shared, env, pool->obs + size_t(slot) * pool->shared.frame_size() * size_t(pool->shared.options.stack));
    pool->results[slot] = Result{};
    report(env, pool->results[slot]);
    return 1;
} catch (...) {
    return 0;
}
// RAM and the picture of an environment, 210×160: as the pictures are held (greys or colour numbers).
A2600_API void a2600_pool_peek(Pool* pool, i32 slot, u8* ram, u8* picture) {
    const Console& console = pool->env(slot).console;
    memcpy(ram, console.state.riot.ram, 128);
    memcpy(picture, console.screen[console.state.play.parity], SCREEN);
}
