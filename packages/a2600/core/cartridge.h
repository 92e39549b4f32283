// The cartridge: which bytes the processor sees at $1000-$1FFF, and the addresses that switch them.
#pragma once

#include "game.h"

namespace a2600 {

// Bytes of a bank, the unit that is switched and decoded; four more decoded entries follow each bank.
constexpr u32 bank_size(Kind kind) { return kind == Kind::E0 ? 1024 : 4096; }
constexpr u32 OPS_EXTRA = 4;

inline void reset_banks(const Game& game, Play& play) {
    switch (game.kind) {
    case Kind::F8: memset(play.bank, 1, 4); break;
    case Kind::E0: for (int window = 0; window < 4; window++) play.bank[window] = u8(4 + window); break;
    default: memset(play.bank, 0, 4); break;
    }
}

inline const u8* bank_bytes(const Game& game, const Play& play, u32 address) {
    if (game.kind == Kind::E0) return game.rom + play.bank[address >> 10 & 3] * 1024 + (address & 0x3ff);
    return game.rom + play.bank[0] * 4096 + (address & 0xfff);
}

// Whether an access to this address may switch banks.
ALWAYS_INLINE bool is_hotspot(Kind kind, u32 address) {
    u32 offset = address & 0xfff;
    if (kind == Kind::F8) return offset >= 0xff8 && offset <= 0xff9;
    if (kind == Kind::F6) return offset >= 0xff6 && offset <= 0xff9;
    if (kind == Kind::E0) return offset >= 0xfe0 && offset <= 0xff7;
    return false;
}

ALWAYS_INLINE void switch_bank(Kind kind, Play& play, u32 address) {
    u32 offset = address & 0xfff;
    if (kind == Kind::F8) memset(play.bank, int(offset - 0xff8), 4);
    if (kind == Kind::F6) memset(play.bank, int(offset - 0xff6), 4);
    if (kind == Kind::E0) play.bank[(offset - 0xfe0) >> 3] = u8(offset & 7);
}

// FE: the high byte of the address after JSR and RTS selects the bank.
ALWAYS_INLINE void select_by_address(Kind kind, Play& play, u32 high) {
    if (kind == Kind::FE) memset(play.bank, high & 0x20 ? 0 : 1, 4);
}

}  // namespace a2600
