// The beam: draws what the objects cover, line by line, and notes collisions.
#pragma once

#include "game.h"
#include "objects.h"
#include "pixels.h"

namespace a2600 {

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
    if (t.dirty) build_masks(t);
    u32 possible = TIA.pairs[t.shown] & ~t.collisions, found = 0;
    if (possible) {
        Pixels inside = pixels_of(TIA.below[to]) & ~pixels_of(TIA.below[from]);
        do {
            u32 bit = u32(__builtin_ctz(possible));
            Pixels both = pixels_of(t.mask[TIA.first[bit]]) & pixels_of(t.mask[TIA.second[bit]]);
            found |= u32(any(both & inside)) << bit;
        } while (possible &= possible - 1);
        t.collisions |= u16(found);
    }
    t.same = whole && !t.comb;
    if (!row) return;

    const u8* shade = picture.shade;
    u8 colors[4] = {shade[t.color[3]], shade[t.color[2]], shade[t.color[1]], shade[t.color[0]]};
    bool priority = t.ctrlpf & 4, score = (t.ctrlpf & 6) == 2;
    Pixels players0 = pixels_of(t.mask[P0]) | pixels_of(t.mask[M0]);
    Pixels players1 = (pixels_of(t.mask[P1]) | pixels_of(t.mask[M1])) & ~players0;
    Pixels field = pixels_of(t.mask[PF]), ball = pixels_of(t.mask[BL]);
    if (priority) {
        field |= ball;
        players0 &= ~field;
        players1 &= ~field;
    } else {
        Pixels behind = ~(players0 | players1);
        field &= behind;
        ball &= behind;
        if (score) {
            const Pixels left = {~u64(0), 0xffff, 0, 0};
            players0 = (players0 | (field & left)) & ~ball;
            players1 = (players1 | (field & ~left)) & ~ball;
            field = ball;
        } else {
            field |= ball;
        }
    }
    Mask select[3];  // which pixels have the colour of the playfield, of player 1, of player 0
    memcpy(&select[0], &field, sizeof field);
    memcpy(&select[1], &players1, sizeof players1);
    memcpy(&select[2], &players0, sizeof players0);
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

inline void begin_line(Tia& t) { t.drawn = t.line == HEIGHT ? NEVER : t.line_start + BLANK; }

NEVER_INLINE inline void complete(Tia& t, const Picture& picture, i32 clock) {
    i32 stop = t.line_start + (HEIGHT - t.line) * LINE;
    if (clock > stop) clock = stop;
    if (!picture.screen && ((t.vblank & 2) || !(TIA.pairs[may_show(t)] & ~t.collisions))) {
        // nothing to draw and nothing to collide: skip to the clock
        i32 lines = (clock - t.line_start) / LINE;
        if (lines > 0) {
            end_line(t);
            t.line += lines - 1;
            t.line_start += (lines - 1) * LINE;
            begin_line(t);
        }
        if (clock > t.drawn) t.drawn = clock;
        t.same = 0;
        return;
    }
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
        begin_line(t);
        if (t.same && !picture.screen && t.line < HEIGHT) {
            i32 lines = (clock - t.line_start) / LINE;
            t.line += lines;
            t.line_start += lines * LINE;
            begin_line(t);
        }
    }
}

// Bring the picture up to `clock`.
ALWAYS_INLINE void update(Tia& t, const Picture& picture, i32 clock) {
    if (clock > t.drawn) complete(t, picture, clock);
}

}  // namespace a2600
