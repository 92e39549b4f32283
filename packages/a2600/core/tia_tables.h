// Tables of the picture chip: shapes, motion by HMOVE, collisions, and where strobes fall.
#pragma once

#include "console.h"

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
    Mask below[161];            // pixels left of x
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
            for (int pixel = 0; pixel < x; pixel++) below[x].word[pixel >> 6] |= u64(1) << (pixel & 63);
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

}  // namespace a2600
