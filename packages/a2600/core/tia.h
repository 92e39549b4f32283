// TIA: the registers of the picture chip. A write first completes the picture up to the clock at which it shows.
#pragma once

#include "picture.h"

namespace a2600 {

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
    t.line_start = t.origin + first_line * LINE;
    t.line = 0;
    begin_line(t);
    t.same = t.frame_over = 0;
}

}  // namespace a2600
