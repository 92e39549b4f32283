// TIA: objects, collisions and the picture. A write first completes the picture up to the clock at which it shows.
#pragma once

#include "console.h"
#include "game.h"
#include "pixels.h"

namespace a2600 {

// Offsets of the second and third copy of a player or missile, by NUSIZ bits 0-2; and the width of a player's pixel.
constexpr u8 COPIES[8][2] = {{0, 0}, {16, 0}, {32, 0}, {16, 32}, {64, 0}, {0, 0}, {32, 64}, {0, 0}};
constexpr u8 STRETCH[8] = {1, 1, 1, 1, 1, 2, 1, 4};

struct TiaTables {
    u8 reversed[256];
    u32 player[3][2][256];      // stretched 1, 2, 4 times; plain and reflected; leftmost pixel in bit 0
    u32 field[2][256];          // 4 pixels a bit: bit 7 first, bit 0 first
    i8 motion[76][16];          // pixels by cycle of HMOVE and nibble
    u16 pairs[64];              // collision bits that a set of objects can cause
    u8 first[16], second[16];   // the two objects of a collision bit
    u64 below[161][3];          // pixels left of x
    u8 strobe[8][160];          // RESP: 0 between copies, 1 within a copy, 2 shortly before a copy

    TiaTables() {
        memset(this, 0, sizeof *this);
        for (int value = 0; value < 256; value++) {
            for (int bit = 0; bit < 8; bit++) {
                if (!(value >> bit & 1)) continue;
                reversed[value] |= 0x80 >> bit;
                for (int size = 0; size < 3; size++) {
                    int width = 1 << size;
                    u32 pixels = (1u << width) - 1;
                    player[size][0][value] |= pixels << (width * (7 - bit));
                    player[size][1][value] |= pixels << (width * bit);
                }
                field[0][value] |= 15u << (4 * (7 - bit));
                field[1][value] |= 15u << (4 * bit);
            }
        }
        for (int cycle = 0; cycle < 76; cycle++) {
            for (int nibble = 0; nibble < 16; nibble++) {
                int pulses = nibble ^ 8, moved = 0;
                if (cycle < 4 || cycle == 75) {
                    moved = 8 - pulses;
                } else if (cycle <= 20) {
                    int most = (70 - 3 * cycle) / 4;
                    moved = 8 - (pulses < most ? pulses : most);
                } else if (cycle >= 55) {
                    int least = (225 - 3 * cycle) / 4;
                    moved = pulses > least ? least - pulses : 0;
                }
                motion[cycle][nibble] = i8(moved);
            }
        }
        const u8 order[16][2] = {{M0, P0}, {M0, P1}, {M1, P1}, {M1, P0}, {P0, BL}, {P0, PF}, {P1, BL}, {P1, PF},
                                 {M0, BL}, {M0, PF}, {M1, BL}, {M1, PF}, {BL, BL}, {BL, PF}, {M0, M1}, {P0, P1}};
        for (int bit = 0; bit < 16; bit++) {
            first[bit] = order[bit][0];
            second[bit] = order[bit][1];
            for (int set = 0; set < 64; set++) {
                if (bit != 12 && (set >> first[bit] & 1) && (set >> second[bit] & 1)) pairs[set] |= u16(1 << bit);
            }
        }
        for (int x = 0; x <= 160; x++) {
            for (int pixel = 0; pixel < x; pixel++) below[x][pixel >> 6] |= u64(1) << (pixel & 63);
        }
        for (int mode = 0; mode < 8; mode++) {
            int width = 8 * STRETCH[mode];
            for (int distance = 0; distance < 160; distance++) {
                for (int copy = 0; copy < 3; copy++) {
                    int offset = copy ? COPIES[mode][copy - 1] : 0;
                    if (copy && !offset) continue;
                    int after = (distance - offset + 160) % 160;
                    if (after < 4) strobe[mode][distance] = 2;
                    else if (after < 4 + width) strobe[mode][distance] = 1;
                }
            }
        }
    }
};

inline const TiaTables TIA;

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

// What a console's picture chip works with besides its state.
struct Picture {
    const Game* game;
    u8* screen;        // of this frame; null: not drawn
    const u8* shade;   // what a colour looks like on the screen
};

// Pixels [from, to) of the present line: collisions, and the picture if the frame is drawn.
NEVER_INLINE inline void segment(Tia& t, const Picture& picture, u32 from, u32 to) {
    bool whole = from == 0 && to == WIDTH;
    u8* row = picture.screen ? picture.screen + t.line * WIDTH : nullptr;
    if (whole && t.same) {
        if (row) memcpy(row, row - WIDTH, WIDTH);
        return;
    }
    if (t.vblank & 2) {
        if (row) memset(row + from, picture.shade[0], to - from);
        t.same = whole;
        return;
    }
    if (!row && !(TIA.pairs[may_show(t)] & ~t.collisions)) {  // nothing to draw, nothing to collide
        t.same = whole && !t.comb;
        return;
    }
    if (t.dirty) build_masks(t);
    u32 possible = TIA.pairs[t.shown] & ~t.collisions, found = 0;
    if (possible) {
        const u64 *start = TIA.below[from], *end = TIA.below[to];
        u64 in0 = end[0] & ~start[0], in1 = end[1] & ~start[1], in2 = end[2] & ~start[2];
        do {
            u32 bit = u32(__builtin_ctz(possible));
            const u64 *a = t.mask[TIA.first[bit]].word, *b = t.mask[TIA.second[bit]].word;
            found |= u32(((a[0] & b[0] & in0) | (a[1] & b[1] & in1) | (a[2] & b[2] & in2)) != 0) << bit;
        } while (possible &= possible - 1);
        t.collisions |= u16(found);
    }
    t.same = whole && !t.comb;
    if (!row) return;

    const u8* shade = picture.shade;
    u8 colors[4] = {shade[t.color[3]], shade[t.color[2]], shade[t.color[1]], shade[t.color[0]]};
    bool priority = t.ctrlpf & 4, score = (t.ctrlpf & 6) == 2;
    u64 select[3][3];  // playfield, player 1, player 0: which colour a pixel has
    const u64 left[3] = {~u64(0), 0xffff, 0};
    for (u32 word = from >> 6; word <= (to - 1) >> 6; word++) {
        u64 players0 = t.mask[P0].word[word] | t.mask[M0].word[word];
        u64 players1 = (t.mask[P1].word[word] | t.mask[M1].word[word]) & ~players0;
        u64 field = t.mask[PF].word[word], ball = t.mask[BL].word[word];
        if (priority) {
            field |= ball;
            players0 &= ~field;
            players1 &= ~field;
        } else {
            u64 behind = ~(players0 | players1);
            field &= behind;
            ball &= behind;
            if (score) {
                players0 |= field & left[word];
                players1 |= field & ~left[word];
                players0 &= ~ball;
                players1 &= ~ball;
                field = ball;
            } else {
                field |= ball;
            }
        }
        select[0][word] = field;
        select[1][word] = players1;
        select[2][word] = players0;
    }
    paint(row, from, to, select, colors);
    if (t.comb && from < 8) memset(row + from, shade[0], (to < 8 ? to : 8) - from);
}

inline void end_line(Tia& t) {
    t.line++;
    t.line_start += LINE;
    if (t.comb) t.comb = t.same = 0;
    if (t.left_out[0] | t.left_out[1]) {
        t.left_out[0] = t.left_out[1] = t.same = 0;
        t.dirty |= 1 << P0 | 1 << P1;
    }
    if (t.mirror_now != (t.ctrlpf & 1)) {
        t.mirror_now = t.ctrlpf & 1;
        t.dirty |= 1 << PF;
        t.same = 0;
    }
}

NEVER_INLINE inline void complete(Tia& t, const Picture& picture, i32 clock) {
    i32 stop = t.line_start + (HEIGHT - t.line) * LINE;
    if (clock > stop) clock = stop;
    while (t.drawn < clock) {
        i32 x = t.drawn - t.line_start - BLANK, to = clock - t.line_start - BLANK;
        if (x < 0) x = 0;
        if (to < WIDTH) {
            if (to > x) segment(t, picture, u32(x), u32(to));
            t.drawn = clock;
            return;
        }
        segment(t, picture, u32(x), WIDTH);
        end_line(t);
        t.drawn = t.line == HEIGHT ? NEVER : t.line_start;
        if (t.same && !picture.screen) {
            i32 lines = (clock - t.drawn) / LINE;
            t.line += lines;
            t.line_start += lines * LINE;
            t.drawn = t.line == HEIGHT ? NEVER : t.line_start;
        }
    }
}

// Bring the picture up to `clock`.
ALWAYS_INLINE void update(Tia& t, const Picture& picture, i32 clock) {
    if (clock > t.drawn) complete(t, picture, clock);
}

ALWAYS_INLINE i32 clock_of_line(const Tia& t, i32 clock) { return i32(u32(clock - t.origin) % u32(LINE)); }

// Value of a read register without the bits that TIA does not drive.
inline u8 tia_read(State& state, const Picture& picture, u32 address, i32 cycles) {
    Tia& t = state.tia;
    u32 number = address & 15;
    if (number < 8) {
        update(t, picture, cycles * 3);
        return u8((t.collisions >> (2 * number) & 3) << 6);
    }
    if (number < 12) {  // paddles load a capacitor
        i32 resistance = paddle_resistance(*picture.game, state.play, number & 3);
        if (resistance < 0 || (t.vblank & 0x80)) return 0;
        if (resistance == 0) return 0x80;
        i32 needed = i32(1.6 * resistance * 0.01e-6 * 1.19e6);
        return cycles > t.dump_end + needed ? 0x80 : 0;
    }
    if (number == 12) return state.play.fire[0] ? 0 : 0x80;
    if (number == 13) return state.play.fire[1] ? 0 : 0x80;
    return 0;
}

constexpr u8 ALL_OBJECTS = (1 << OBJECTS) - 1;

ALWAYS_INLINE void changed(Tia& t, u32 objects) {
    t.dirty |= u8(objects);
    t.same = 0;
}

// RESP: a copy that is being drawn is finished; the first copy is left out unless a copy was about to begin.
inline void strobe_player(Tia& t, const Picture& picture, int n, i32 clock) {
    i32 h = clock_of_line(t, clock);
    u32 next = h < BLANK ? 3 : u32(h - BLANK + 5) % 160, now = t.position[n ? P1 : P0];
    u8 where = TIA.strobe[t.nusiz[n] & 7][(next + 160 - now) % 160];
    if (where == 1) update(t, picture, clock + 11);
    t.position[n ? P1 : P0] = u8(next);
    t.left_out[n] = where != 2;
    changed(t, 1u << (n ? P1 : P0));
}

inline void strobe_missile(Tia& t, int n, i32 clock) {
    i32 h = clock_of_line(t, clock), since = clock - t.last_hmove;
    u32 next = h < BLANK ? 2 : u32(h - BLANK + 4) % 160;
    if (n == 0 && since == 60 && h == 69) next = 8;
    t.position[n ? M1 : M0] = u8(next);
    changed(t, 1u << (n ? M1 : M0));
}

inline void strobe_ball(Tia& t, i32 clock) {
    i32 h = clock_of_line(t, clock), since = clock - t.last_hmove;
    u32 next = h < BLANK ? 2 : u32(h - BLANK + 4) % 160;
    if (since == 54 && (h == 60 || h == 69)) next = 10;
    if (since == 9 && h == 18) next = 3;
    if (since == 21 && h == 30) next = 6;
    if (since == 18 && h == 27) next = 5;
    t.position[BL] = u8(next);
    changed(t, 1u << BL);
}

inline void hmove(Tia& t, const Picture& picture, i32 clock) {
    i32 cycle = clock_of_line(t, clock) / 3;
    if (picture.game->comb && (cycle <= 20 || cycle == 75)) {
        t.comb = 1;
        t.same = 0;
    }
    for (int object = 0; object < 5; object++) {
        int moved = TIA.motion[cycle][t.motion[object] >> 4];
        if (!moved) continue;
        t.position[object] = u8((t.position[object] + moved + 160) % 160);
        changed(t, 1u << object);
    }
    if (t.left_out[0] | t.left_out[1]) changed(t, 1u << P0 | 1u << P1);
    t.left_out[0] = t.left_out[1] = 0;
    t.last_hmove = clock;
}

constexpr i32 MAX_LINES = 290;  // a frame without VSYNC ends after so many lines

// Write a register that may change the picture. All have the form of `tia_write`, so that calls are jumps.
NEVER_INLINE inline i32 change_register(State& state, const Picture& picture, u32 address, u8 value, i32 cycles) {
    Tia& t = state.tia;
    i32 clock = cycles * 3;
    switch (address & 63) {
    case 0x00:  // VSYNC
        update(t, picture, clock);
        if (value & 2) {
            t.vsync_end = clock + LINE;
        } else if (clock >= t.vsync_end) {
            t.vsync_end = NEVER;
            t.frame_over = 1;
        }
        t.vsync = value;
        break;
    case 0x01:  // VBLANK
        if ((t.vblank ^ value) & 2) {
            update(t, picture, clock);
            t.same = 0;
        }
        if ((t.vblank & 0x80) && !(value & 0x80)) t.dump_end = cycles;
        t.vblank = value;
        break;
    case 0x04:
    case 0x05: {  // NUSIZ
        int n = address & 1;
        if (t.nusiz[n] == value) {
            if (t.left_out[n]) {
                update(t, picture, clock + 8);
                t.left_out[n] = 0;
                changed(t, 1u << (n ? P1 : P0));
            }
            break;
        }
        update(t, picture, clock + 8);
        t.nusiz[n] = value;
        t.left_out[n] = 0;
        changed(t, n ? 1u << P1 | 1u << M1 : 1u << P0 | 1u << M0);
        break;
    }
    case 0x06:
    case 0x07:
    case 0x08:
    case 0x09: {  // COLU
        u8& color = t.color[(address & 63) - 6];
        if (color == (value & 0xfe)) break;
        update(t, picture, clock);
        color = value & 0xfe;
        t.same = 0;
        break;
    }
    case 0x0a:  // CTRLPF
        if (t.ctrlpf == value) break;
        update(t, picture, clock);
        if ((t.ctrlpf ^ value) & 0x30) t.dirty |= 1 << BL;
        t.ctrlpf = value;
        t.same = 0;
        if (clock_of_line(t, clock) < BLANK + 79 && t.mirror_now != (value & 1)) {
            t.mirror_now = value & 1;
            t.dirty |= 1 << PF;
        }
        break;
    case 0x0b:
    case 0x0c: {  // REFP
        int n = (address & 63) - 0x0b;
        if (!((t.refp[n] ^ value) & 8)) break;
        update(t, picture, clock + 1);
        t.refp[n] = value;
        changed(t, 1u << (n ? P1 : P0));
        break;
    }
    case 0x0d:
    case 0x0e:
    case 0x0f: {  // PF
        u8& field = t.pf[(address & 63) - 0x0d];
        if (field == value) break;
        constexpr u8 DELAY[4] = {4, 5, 2, 3};
        update(t, picture, clock + DELAY[clock_of_line(t, clock) / 3 & 3]);
        field = value;
        changed(t, 1u << PF);
        break;
    }
    case 0x10:
        update(t, picture, clock);
        strobe_player(t, picture, 0, clock);
        break;
    case 0x11:
        update(t, picture, clock);
        strobe_player(t, picture, 1, clock);
        break;
    case 0x12:
        update(t, picture, clock + 8);
        strobe_missile(t, 0, clock);
        break;
    case 0x13:
        update(t, picture, clock + 8);
        strobe_missile(t, 1, clock);
        break;
    case 0x14:
        update(t, picture, clock);
        strobe_ball(t, clock);
        break;
    case 0x1b:  // GRP0
        if (t.grp[0] != value) {
            update(t, picture, clock + 1);
            t.grp[0] = value;
            changed(t, 1u << P0);
        }
        if (t.old_grp[1] != t.grp[1]) {
            if (t.vdelp[1] & 1) {
                update(t, picture, clock + 1);
                changed(t, 1u << P1);
            }
            t.old_grp[1] = t.grp[1];
        }
        break;
    case 0x1c:  // GRP1
        if (t.grp[1] != value) {
            update(t, picture, clock + 1);
            t.grp[1] = value;
            changed(t, 1u << P1);
        }
        if (t.old_grp[0] != t.grp[0]) {
            if (t.vdelp[0] & 1) {
                update(t, picture, clock + 1);
                changed(t, 1u << P0);
            }
            t.old_grp[0] = t.grp[0];
        }
        if (t.old_enabl != t.enabl) {
            if (t.vdelbl & 1) {
                update(t, picture, clock + 1);
                changed(t, 1u << BL);
            }
            t.old_enabl = t.enabl;
        }
        break;
    case 0x1d:
    case 0x1e: {  // ENAM
        int n = (address & 63) - 0x1d;
        if (!((t.enam[n] ^ value) & 2)) break;
        update(t, picture, clock);
        t.enam[n] = value;
        changed(t, 1u << (n ? M1 : M0));
        break;
    }
    case 0x1f:  // ENABL
        if (!((t.enabl ^ value) & 2)) break;
        update(t, picture, clock);
        t.enabl = value;
        changed(t, 1u << BL);
        break;
    case 0x20:
    case 0x21:
    case 0x22:
    case 0x23:
    case 0x24: {  // HM: players, missiles, ball; objects are ordered player, missile, player, missile, ball
        constexpr u8 OBJECT[5] = {P0, P1, M0, M1, BL};
        t.motion[OBJECT[(address & 63) - 0x20]] = value;
        break;
    }
    case 0x25:
    case 0x26: {  // VDELP
        int n = (address & 63) - 0x25;
        if (!((t.vdelp[n] ^ value) & 1)) break;
        update(t, picture, clock);
        t.vdelp[n] = value;
        changed(t, 1u << (n ? P1 : P0));
        break;
    }
    case 0x27:  // VDELBL
        if (!((t.vdelbl ^ value) & 1)) break;
        update(t, picture, clock);
        t.vdelbl = value;
        changed(t, 1u << BL);
        break;
    case 0x28:
    case 0x29: {  // RESMP: a missile that is released starts in the middle of its player
        int n = (address & 63) - 0x28;
        if (!((t.resmp[n] ^ value) & 2)) break;
        update(t, picture, clock);
        if (!(value & 2)) {
            t.position[n ? M1 : M0] =
                u8((t.position[n ? P1 : P0] + 4 * STRETCH[t.nusiz[n] & 7]) % 160);
        }
        t.resmp[n] = value;
        changed(t, 1u << (n ? M1 : M0));
        break;
    }
    case 0x2a:
        update(t, picture, clock);
        hmove(t, picture, clock);
        break;
    case 0x2b:  // HMCLR
        memset(t.motion, 0, sizeof t.motion);
        break;
    case 0x2c:  // CXCLR
        if (!t.collisions) break;
        update(t, picture, clock);
        t.collisions = 0;
        t.same = 0;
        break;
    default:
        break;
    }
    return cycles;
}

// Write a register after the instruction's `cycles`; returns the cycles after the write (WSYNC waits).
ALWAYS_INLINE i32 tia_write(State& state, const Picture& picture, u32 address, u8 value, i32 cycles) {
    Tia& t = state.tia;
    u32 number = address & 63;
    i32 passed = cycles * 3 - t.origin;
    if (UNLIKELY(passed > (MAX_LINES + 1) * LINE - 1)) t.frame_over = 1;
    if (number == 0x02) {  // WSYNC
        i32 done = i32(u32(passed) % u32(LINE)) / 3;
        return done ? cycles + 76 - done : cycles;
    }
    if (number - 0x06 <= 3 && t.color[number - 0x06] == (value & 0xfe)) return cycles;
    if (number - 0x0d <= 2 && t.pf[number - 0x0d] == value) return cycles;
    return change_register(state, picture, address, value, cycles);
}

inline void begin_picture(Tia& t, i32 first_line) {
    t.drawn = t.line_start = t.origin + first_line * LINE;
    t.line = 0;
    t.same = t.frame_over = 0;
}

}  // namespace a2600
