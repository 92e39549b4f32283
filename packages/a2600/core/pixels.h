// From bits to pixels: one byte a pixel, written 32 at a time where the processor can.
#pragma once

#include "console.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace a2600 {

// All pixels of a line at once.
typedef u64 Pixels __attribute__((vector_size(32)));

ALWAYS_INLINE Pixels pixels_of(const Mask& mask) {
    Pixels pixels;
    memcpy(&pixels, mask.word, sizeof pixels);
    return pixels;
}

ALWAYS_INLINE bool any(Pixels pixels) {
#if defined(__AVX2__)
    return !_mm256_testz_si256(__m256i(pixels), __m256i(pixels));
#else
    return pixels[0] | pixels[1] | pixels[2];
#endif
}

struct Spread {
    u64 byte[256];  // bit n → byte n: 0 or 255
    Spread() {
        for (int value = 0; value < 256; value++) {
            byte[value] = 0;
            for (int bit = 0; bit < 8; bit++) {
                if (value >> bit & 1) byte[value] |= u64(255) << (8 * bit);
            }
        }
    }
};

inline const Spread SPREAD;

#if defined(__AVX512BW__) && defined(__AVX512VL__)
ALWAYS_INLINE void paint32(u8* row, u32 inside, u32 a, u32 b, u32 c, const u8* colors) {
    __m256i pixels = _mm256_set1_epi8(char(colors[0]));
    pixels = _mm256_mask_set1_epi8(pixels, a, char(colors[1]));
    pixels = _mm256_mask_set1_epi8(pixels, b, char(colors[2]));
    pixels = _mm256_mask_set1_epi8(pixels, c, char(colors[3]));
    _mm256_mask_storeu_epi8(row, inside, pixels);
}
#elif defined(__AVX2__)
ALWAYS_INLINE __m256i spread32(u32 bits) {
    const __m256i index = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3,
                                           3, 3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x(i64(0x8040201008040201ull));
    __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(i32(bits)), index);
    return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
}
ALWAYS_INLINE void paint32(u8* row, u32 inside, u32 a, u32 b, u32 c, const u8* colors) {
    __m256i pixels = _mm256_set1_epi8(char(colors[0]));
    if (a) pixels = _mm256_blendv_epi8(pixels, _mm256_set1_epi8(char(colors[1])), spread32(a));
    if (b) pixels = _mm256_blendv_epi8(pixels, _mm256_set1_epi8(char(colors[2])), spread32(b));
    if (c) pixels = _mm256_blendv_epi8(pixels, _mm256_set1_epi8(char(colors[3])), spread32(c));
    __m256i* place = reinterpret_cast<__m256i*>(row);
    if (inside != ~0u) pixels = _mm256_blendv_epi8(_mm256_loadu_si256(place), pixels, spread32(inside));
    _mm256_storeu_si256(place, pixels);
}
#else
ALWAYS_INLINE void paint32(u8* row, u32 inside, u32 a, u32 b, u32 c, const u8* colors) {
    constexpr u64 ONES = 0x0101010101010101;
    for (int part = 0; part < 4; part++, row += 8, inside >>= 8, a >>= 8, b >>= 8, c >>= 8) {
        u64 mask = SPREAD.byte[inside & 255];
        if (!mask) continue;
        u64 pa = SPREAD.byte[a & 255], pb = SPREAD.byte[b & 255], pc = SPREAD.byte[c & 255], old;
        u64 pixels = (colors[0] * ONES & ~(pa | pb | pc)) | (colors[1] * ONES & pa) | (colors[2] * ONES & pb) |
                     (colors[3] * ONES & pc);
        memcpy(&old, row, 8);
        pixels = (pixels & mask) | (old & ~mask);
        memcpy(row, &pixels, 8);
    }
}
#endif

// Paint pixels [from, to) of a row; `select`: disjoint masks of the colours 1 to 3, colour 0 is elsewhere.
ALWAYS_INLINE void paint(u8* row, u32 from, u32 to, const Mask select[3], const u8* colors) {
    for (u32 block = from >> 5; block <= (to - 1) >> 5; block++) {
        u32 start = block * 32, inside = ~0u;
        if (from > start) inside &= ~0u << (from - start);
        if (to < start + 32) inside &= ~0u >> (start + 32 - to);
        u32 parts[3];
        for (int color = 0; color < 3; color++) memcpy(&parts[color], reinterpret_cast<const u8*>(&select[color]) + 4 * block, 4);
        paint32(row + start, inside, parts[0], parts[1], parts[2], colors);
    }
}

}  // namespace a2600
