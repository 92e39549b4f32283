// Observations: maximum of two pictures, then the mean over areas, as OpenCV's INTER_AREA computes it.
#pragma once

#include <cmath>
#include <vector>

#include "console.h"

namespace a2600 {

constexpr int SMALL = 84;

// The pixels that one output pixel covers along an axis, and their weights, for any size up to the source's.
struct Axis {
    struct Cell { i32 first, count; float weight[256]; };
    std::vector<Cell> cells;

    Axis(int source, int target) : cells(size_t(target)) {
        double scale = double(source) / target;
        for (int pixel = 0; pixel < target; pixel++) {
            Cell& cell = cells[size_t(pixel)];
            double left = pixel * scale, right = std::fmin((pixel + 1) * scale, double(source));
            int first = int(std::ceil(left)), last = int(std::fmin(std::floor(right), double(source - 1)));
            double width = std::fmin(scale, source - left);
            cell.first = first;
            cell.count = 0;
            if (first - left > 1e-3) {
                cell.first = first - 1;
                cell.weight[cell.count++] = float((first - left) / width);
            }
            for (int inside = first; inside < last; inside++) cell.weight[cell.count++] = float(1.0 / width);
            if (right - last > 1e-3) {
                cell.weight[cell.count++] = float(std::fmin(std::fmin(right - last, 1.0), width) / width);
            }
        }
    }
};

// One output pixel in OpenCV's order of float32 operations: along the rows, then down the column.
inline u8 resize_pixel(const u8* picture, int stride, int step, const Axis::Cell& row, const Axis::Cell& column) {
    float total = 0;
    for (int y = 0; y < row.count; y++) {
        const u8* line = picture + (row.first + y) * stride + column.first * step;
        float sum = 0;
        for (int x = 0; x < column.count; x++) {
            float part = float(line[x * step]) * column.weight[x];
            sum = x ? sum + part : part;
        }
        float part = sum * row.weight[y];
        total = y ? total + part : part;
    }
    return u8(std::nearbyint(total));
}

// Any size and number of channels.
inline void resize(const u8* picture, int channels, const Axis& rows, const Axis& columns, u8* out) {
    for (const Axis::Cell& row : rows.cells) {
        for (const Axis::Cell& column : columns.cells) {
            for (int c = 0; c < channels; c++) *out++ = resize_pixel(picture + c, WIDTH * channels, channels, row, column);
        }
    }
}

// 210×160 → 84×84 with whole numbers: weights of a cell add up to 5 down and 40 across. Where the mean is halfway between
// two numbers the order of float32 operations decides.
//
// A cell covers 40 21sts of pixels, so the first pixel moves on by 2 for each cell and 8 times by 1 only: with the even
// and the odd pixels of a line apart, cells between two such places read consecutive numbers.
struct Small {
    static constexpr int RUNS = 9, LANES = 16;
    struct Run { i32 cell, at[3]; u16 weight[3][LANES]; };  // at: where its three pixels begin in the split line
    static constexpr int ODD = 96;                          // the odd pixels begin here, after 80 even ones and padding
    Run runs[RUNS];
    Axis rows{HEIGHT, SMALL}, columns{WIDTH, SMALL};

    Small() {
        memset(runs, 0, sizeof runs);
        int run = -1, last = -2;
        for (int cell = 0; cell < SMALL; cell++) {
            int left = 40 * cell, first = left / 21;
            if (first != last + 2 || cell == 0) {
                run++;
                runs[run].cell = cell;
                for (int tap = 0; tap < 3; tap++) {
                    int pixel = first + tap;
                    runs[run].at[tap] = (pixel & 1 ? ODD : 0) + pixel / 2;
                }
            }
            last = first;
            for (int tap = 0; tap < 3; tap++) {
                int from = (first + tap) * 21, to = from + 21;
                from = from > left ? from : left;
                to = to < left + 40 ? to : left + 40;
                runs[run].weight[tap][cell - runs[run].cell] = u16(to > from ? to - from : 0);
            }
        }
    }

    void resize(const u8* picture, u8* out) const {
        u16 lines[2][2 * ODD];
        memset(lines, 0, sizeof lines);
        for (int pair = 0; pair < SMALL / 2; pair++) {
            const u8* from = picture + 5 * pair * WIDTH;
            for (int x = 0; x < WIDTH / 2; x++) {
                const u8* p = from + 2 * x;
                u16 even = p[2 * WIDTH], odd = p[2 * WIDTH + 1];
                lines[0][x] = u16(2 * (p[0] + p[WIDTH]) + even);
                lines[0][ODD + x] = u16(2 * (p[1] + p[WIDTH + 1]) + odd);
                lines[1][x] = u16(2 * (p[3 * WIDTH] + p[4 * WIDTH]) + even);
                lines[1][ODD + x] = u16(2 * (p[3 * WIDTH + 1] + p[4 * WIDTH + 1]) + odd);
            }
            resize_line(picture, lines[0], 2 * pair, out);
            resize_line(picture, lines[1], 2 * pair + 1, out + SMALL);
            out += 2 * SMALL;
        }
    }

    ALWAYS_INLINE void resize_line(const u8* picture, const u16* line, int row, u8* out) const {
        u16 sums[SMALL + LANES];
        u8 half[SMALL + 4] = {0};
        for (const Run& run : runs) {
            const u16 *a = line + run.at[0], *b = line + run.at[1], *c = line + run.at[2];
            u16* to = sums + run.cell;
            for (int i = 0; i < LANES; i++) {
                to[i] = u16(a[i] * run.weight[0][i] + b[i] * run.weight[1][i] + c[i] * run.weight[2][i]);
            }
        }
        for (int x = 0; x < SMALL; x++) {
            u16 sum = u16(sums[x] + 100), mean = u16(u32(u16(sum >> 3)) * 5243 >> 17);
            half[x] = u16(mean * 200) == sum;
            out[x] = u8(mean);
        }
        for (int part = 0; part < SMALL + 4; part += 8) {
            u64 any;
            memcpy(&any, half + part, 8);
            for (; UNLIKELY(any); any &= any - 1) {
                int x = part + __builtin_ctzll(any) / 8;
                out[x] = resize_pixel(picture, WIDTH, 1, rows.cells[size_t(row)], columns.cells[size_t(x)]);
            }
        }
    }
};

}  // namespace a2600
