// The six objects of a line as masks of 160 pixels: players, missiles, ball and playfield.
#pragma once

#include "tia_tables.h"

namespace a2600 {

constexpr u8 ALL_OBJECTS = (1 << OBJECTS) - 1;

// Place up to 32 pixels, wrapping around the right edge.
ALWAYS_INLINE void place(Mask& mask, u64 pixels, u32 x) {
    u32 word = x >> 6, shift = x & 63;
    mask.word[word] |= pixels << shift;
    if (shift > 32 && word < 2) mask.word[word + 1] |= pixels >> (64 - shift);
    if (word == 2) mask.word[0] |= (pixels << shift) >> 32;
}

inline void build_player(Tia& t, int n) {
    Mask& mask = t.mask[n ? P1 : P0];
    mask = Mask{};
    u8 shape = t.vdelp[n] & 1 ? t.old_grp[n] : t.grp[n];
    if (!shape) return;
    u32 mode = t.nusiz[n] & 7, x = t.position[n ? P1 : P0];
    u32 size = STRETCH[mode] >> 1, wide = size != 0;
    u64 pixels = TIA.player[size][t.refp[n] >> 3 & 1][shape];
    u32 start = x + wide;
    if (!t.left_out[n]) place(mask, pixels, start >= 160 ? start - 160 : start);
    for (u32 offset : COPIES[mode]) {
        if (offset) place(mask, pixels, (start + offset) % 160);
    }
    mask.word[2] &= 0xffffffff;
}

inline void build_missile(Tia& t, int n) {
    Mask& mask = t.mask[n ? M1 : M0];
    mask = Mask{};
    if (!(t.enam[n] & 2) || (t.resmp[n] & 2)) return;
    u32 mode = t.nusiz[n] & 7, x = t.position[n ? M1 : M0];
    u64 pixels = (1u << (1 << (t.nusiz[n] >> 4 & 3))) - 1;
    place(mask, pixels, x);
    for (u32 offset : COPIES[mode]) {
        if (offset) place(mask, pixels, (x + offset) % 160);
    }
    mask.word[2] &= 0xffffffff;
}

inline void build_ball(Tia& t) {
    Mask& mask = t.mask[BL];
    mask = Mask{};
    if (!((t.vdelbl & 1 ? t.old_enabl : t.enabl) & 2)) return;
    place(mask, (1u << (1 << (t.ctrlpf >> 4 & 3))) - 1, t.position[BL]);
    mask.word[2] &= 0xffffffff;
}

inline void build_field(Tia& t) {
    u64 a = TIA.field[1][t.pf[0] >> 4] & 0xffff, b = TIA.field[0][t.pf[1]], c = TIA.field[1][t.pf[2]];
    u64* word = t.mask[PF].word;
    u64 low = a | b << 16 | c << 48, high = c >> 16;  // 80 pixels
    if (t.mirror_now) {
        u64 rc = TIA.field[0][t.pf[2]], rb = TIA.field[1][t.pf[1]], ra = TIA.field[0][t.pf[0] & 0xf0] & 0xffff;
        word[0] = low;
        word[1] = high | rc << 16 | rb << 48;
        word[2] = rb >> 16 | ra << 16;
    } else {
        word[0] = low;
        word[1] = high | low << 16;
        word[2] = low >> 48 | high << 16;
    }
}

inline void build_masks(Tia& t) {
    u32 dirty = t.dirty;
    if (dirty & 1 << P0) build_player(t, 0);
    if (dirty & 1 << P1) build_player(t, 1);
    if (dirty & 1 << M0) build_missile(t, 0);
    if (dirty & 1 << M1) build_missile(t, 1);
    if (dirty & 1 << BL) build_ball(t);
    if (dirty & 1 << PF) build_field(t);
    for (; dirty; dirty &= dirty - 1) {
        int object = __builtin_ctz(dirty);
        const u64* word = t.mask[object].word;
        u8 bit = u8(1 << object);
        t.shown = (word[0] | word[1] | word[2]) ? t.shown | bit : t.shown & ~bit;
    }
    t.dirty = 0;
}

// Objects that may have pixels, without building their masks.
ALWAYS_INLINE u32 may_show(const Tia& t) {
    u32 p0 = (t.vdelp[0] & 1 ? t.old_grp[0] : t.grp[0]) != 0, p1 = (t.vdelp[1] & 1 ? t.old_grp[1] : t.grp[1]) != 0;
    u32 ball = (t.vdelbl & 1 ? t.old_enabl : t.enabl) >> 1 & 1, field = (t.pf[0] & 0xf0) | t.pf[1] | t.pf[2];
    return p0 | p1 << P1 | (t.enam[0] >> 1 & 1u) << M0 | (t.enam[1] >> 1 & 1u) << M1 | ball << BL | u32(field != 0) << PF;
}

}  // namespace a2600
