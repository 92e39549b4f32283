// Fuzzer: random cartridges, random and damaged states, random rules. Built with sanitizers (cmake -DA2600_FUZZ=ON).
//
// usage: fuzz EXECUTIONS [SEED]. An execution is a loaded cartridge or a loaded state, and the frames that follow.
#include <cstdio>
#include <cstdlib>

#include "api.cpp"

namespace {

Generator random_numbers;

u32 below(u32 bound) { return draw(random_numbers) % bound; }

void fill(u8* bytes, size_t count) {
    for (size_t i = 0; i < count; i++) bytes[i] = u8(draw(random_numbers));
}

Settings random_settings(i32 kind) {
    constexpr i32 SIZES[5] = {4096, 8192, 16384, 8192, 8192};
    Settings settings = {};
    settings.id = below(1000);
    settings.kind = kind;
    settings.size = kind == 0 && below(2) ? 2048 : SIZES[kind];
    settings.first_line = i32(30 + below(11));
    settings.comb = i32(below(2));
    settings.paddle = i32(below(3)) - 1;
    settings.fire_bit = i32(below(8));
    settings.right_port = i32(below(2));
    settings.reset[0][2] = settings.reset[0][4] = 1;
    settings.reset[1][1] = settings.reset[1][2] = settings.reset[1][4] = 1;
    return settings;
}

// Mostly a valid program for each rule, sometimes random code.
Rules random_rules() {
    Rules rules = {};
    bool valid = below(16) != 0;
    i32 at = 0;
    for (i32& start : rules.start) {
        start = at;
        i32 binary = R_ADD + i32(below(R_GE - R_ADD + 1)), unary = R_BCD + i32(below(R_POPCOUNT - R_BCD + 1));
        for (i32 code : {i32(R_RAM), i32(below(128)), i32(R_BEFORE), i32(below(128)), binary, unary, i32(R_END)}) {
            rules.code[at++] = valid ? code : i32(below(R_COUNT + 2));
        }
    }
    return rules;
}

// A program that makes sense more often than random bytes: stores to TIA and RIOT, branches, jumps, bank switches.
void random_program(u8* rom, i32 size) {
    static const u8 LIKELY_CODES[] = {0x85, 0x86, 0x84, 0x95, 0xa9, 0xa2, 0xa0, 0xad, 0x8d, 0xbd, 0xb1, 0x91, 0xd0, 0xf0,
                                      0x10, 0x4c, 0x20, 0x60, 0x48, 0x68, 0x08, 0x28, 0x9a, 0xca, 0x88, 0xe6, 0x6c, 0x40};
    fill(rom, size_t(size));
    for (i32 at = 0; at + 3 < size; at += 1 + i32(below(3))) {
        rom[at] = LIKELY_CODES[below(sizeof LIKELY_CODES)];
        if (below(2)) rom[at + 1] = u8(below(0x2d));
        if (below(4) == 0) rom[at + 1] = u8(0xe0 + below(32)), rom[at + 2] = 0xff;
    }
    for (i32 bank = 1024; bank <= size; bank += 1024) rom[bank - 3] = u8(0xf0 | below(16));
    if (below(64) == 0) memset(rom, below(2) ? 0xea : int(below(256)), size_t(size));  // one instruction, again and again
}

// Change a byte or a number of a saved environment; states and their counters more often than pictures.
void damage(std::vector<u8>& state) {
    constexpr size_t COUNTERS = sizeof(Cpu) + sizeof(Riot) + sizeof(Tia) + sizeof(Play) + 16;
    size_t at = below(4) ? below(sizeof(State)) : below(u32(state.size()));
    if (below(3) == 0) at = offsetof(Env, console) + below(COUNTERS);
    if (below(4) == 0) {
        i32 values[8] = {0, -1, 1, NEVER, 1 << 26, -(1 << 29), INT32_MAX, INT32_MIN};
        i32 value = i32(u32(values[below(8)]) + below(3) - 1);
        memcpy(&state[at & ~size_t(3)], &value, sizeof value);
    } else {
        u8 values[4] = {0, 255, 128, u8(below(256))};
        state[at] = values[below(4)];
    }
}

}  // namespace

int main(int count, char** arguments) {
    long executions = count > 1 ? atol(arguments[1]) : 10000, done = 0, loaded = 0, frames = 0;
    seed(random_numbers, count > 2 ? u32(atol(arguments[2])) : 1);
    std::vector<u8> rom(16384);
    u8 greys[256], rgb[768];
    i32 actions[18];
    for (int i = 0; i < 18; i++) actions[i] = i;
    fill(greys, sizeof greys);
    fill(rgb, sizeof rgb);
    while (done < executions) {
        Settings settings = random_settings(i32(below(5)));
        Rules rules = random_rules();
        rom.resize(size_t(settings.size));  // exact: a read past the end is an error
        rom.shrink_to_fit();
        random_program(rom.data(), settings.size);
        Game* game = a2600_game_new(rom.data(), &settings, &rules);
        done++;
        if (!game) continue;
        Options options = {};
        options.frame_skip = i32(1 + below(4)), options.stack = i32(1 + below(4)), options.max_pool = i32(below(2));
        bool small = below(4) == 0;
        options.height = small ? SMALL : i32(1 + below(6)), options.width = small ? SMALL : i32(1 + below(6));
        options.channels = small || below(2) ? 1 : 3;
        options.noop_max = i32(below(3)), options.max_frames = i32(1 + below(20)), options.fire_reset = i32(below(2));
        options.episodic_life = i32(below(2)), options.life_loss_info = i32(below(2)), options.autoreset = i32(below(3));
        options.sticky = below(2) ? 0.25 : 0.0;
        Pool* pool = a2600_pool_new(game, &options, greys, rgb, actions, 18, 1, 1);
        size_t stack = pool->shared.frame_size() * size_t(options.stack), size = a2600_pool_env_size(pool);
        std::vector<u8> obs(stack), last(stack), good(size), bad(size);
        Result result;
        a2600_pool_bind(pool, obs.data(), last.data(), &result);
        auto play = [&](u32 steps) {
            for (u32 step = 0; step < steps; step++) {
                Command command = {0, i32(below(18)), -1};
                i32 slot;
                a2600_pool_send(pool, &command, 1);
                a2600_pool_receive(pool, &slot, 1, 1, -1);
                frames += options.frame_skip;
            }
        };
        Command begin = {0, -1, i64(below(1000))};
        i32 slot;
        a2600_pool_send(pool, &begin, 1);
        a2600_pool_receive(pool, &slot, 1, 1, -1);
        play(2);
        a2600_pool_save(pool, 0, good.data());
        // fewer states for a cartridge that hangs: its frames take long and are alike
        long until = done + (pool->env(0).console.state.play.partial ? 20 : 400);
        for (; done < until && done < executions; done++) {
            bad = good;
            for (u32 changes = below(8); changes; changes--) damage(bad);
            if (done % 100000 == 0) fprintf(stderr, "%ld executions\n", done);
            if (a2600_pool_load(pool, 0, bad.data())) {
                loaded++;
                play(done % 8 == 0 ? 2 : 1);
            }
        }
        a2600_pool_free(pool);
        a2600_game_free(game);
    }
    printf("%ld executions, %ld states loaded, %ld frames\n", done, loaded, frames);
    return 0;
}
