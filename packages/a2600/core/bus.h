// The bus: what the 6507 reaches at an address. A12 selects the cartridge, A7 RAM or (with A9) RIOT, else TIA answers.
#pragma once

#include "cartridge.h"
#include "riot.h"
#include "tia.h"

namespace a2600 {

// What runs: a console, its game, and where its picture goes.
struct Machine {
    State& state;
    Picture picture;
    bool switched;
};

template <Kind K>
ALWAYS_INLINE Kind kind_of(const Game& game) {
    return K == Kind::Any ? game.kind : K;
}

template <Kind K>
ALWAYS_INLINE const u8* cartridge_bytes(const Game& game, const Play& play, u32 address) {
    if (kind_of<K>(game) == Kind::E0) return game.rom + play.bank[address >> 10 & 3] * 1024 + (address & 0x3ff);
    if (K == Kind::Flat) return game.rom + (address & 0xfff);
    return game.rom + play.bank[0] * 4096 + (address & 0xfff);
}

NEVER_INLINE inline i32 tia_poke(State& state, const Picture& picture, u32 address, u8 value, i32 cycles) {
    return tia_write(state, picture, address, value, cycles);
}

// `bus`: the last byte on the bus, of which TIA leaves the low six bits.
template <Kind K>
NEVER_INLINE u8 peek_slow(Machine& m, u32 address, i32 cycles, u8 bus) {
    State& state = m.state;
    if (address & 0x1000) {
        if (is_hotspot(kind_of<K>(*m.picture.game), address)) {
            switch_bank(kind_of<K>(*m.picture.game), state.play, address);
            m.switched = true;
        }
        return *cartridge_bytes<K>(*m.picture.game, state.play, address);
    }
    if (!(address & 0x80)) return u8(tia_read(state, m.picture, address, cycles) | (bus & 0x3f));
    if (!(address & 0x200)) return state.riot.ram[address & 127];
    return riot_read(state.riot, address, cycles);
}

template <Kind K>
ALWAYS_INLINE u8 peek(Machine& m, u32 address, i32 cycles, u8 bus) {
    if (LIKELY((address & 0x1000) && !is_hotspot(kind_of<K>(*m.picture.game), address))) {
        return *cartridge_bytes<K>(*m.picture.game, m.state.play, address);
    }
    if ((address & 0x1280) == 0x80) return m.state.riot.ram[address & 127];
    return peek_slow<K>(m, address, cycles, bus);
}

template <Kind K>
ALWAYS_INLINE i32 poke(Machine& m, u32 address, u8 value, i32 cycles) {
    State& state = m.state;
    if (address & 0x1000) {
        if (is_hotspot(kind_of<K>(*m.picture.game), address)) {
            switch_bank(kind_of<K>(*m.picture.game), state.play, address);
            m.switched = true;
        }
        return cycles;
    }
    if (!(address & 0x80)) return tia_poke(state, m.picture, address, value, cycles);
    if (!(address & 0x200)) state.riot.ram[address & 127] = value;
    else riot_write(state.riot, address, value, cycles);
    return cycles;
}

}  // namespace a2600
