// RIOT: timer and ports. Its RAM is accessed directly by the processor.
#pragma once

#include "console.h"

namespace a2600 {

constexpr u8 TIMER_SHIFT[4] = {0, 3, 6, 10};

// The timer: counts intervals, and after its expiry single cycles until it has been read.
inline u8 read_timer(Riot& r, i32 cycles) {
    i32 passed = cycles - 1 - r.timer_set;
    i32 value = r.timer - (passed >> r.shift) - 1;
    if (value >= 0) return u8(value);
    value = (r.timer << r.shift) - passed - 1;
    if (!r.expiry_seen) {
        if (value > -2) return u8(value);
        r.expiry_seen = 1;
        r.expiry_read = cycles;
    }
    return u8(r.timer - (passed >> r.shift) - (r.expiry_read - (r.timer_set + (r.timer << r.shift))));
}

// Iterations of the waiting loop that can be skipped: the timer does not reach 0 in them.
inline i32 skip_wait(const Riot& r, i32 cycles) {
    if (r.shift < 3) return 0;
    i32 passed = cycles + 4 - 1 - r.timer_set, left = i32(r.timer - 1) << r.shift;
    i32 value = r.timer - (passed >> r.shift) - 1;
    if (value < 2 || value > 127 || passed < 0) return 0;
    return (left - passed) / 7;
}

inline u8 riot_read(Riot& r, u32 address, i32 cycles) {
    if (address & 4) {
        if (!(address & 1)) return read_timer(r, cycles);
        bool expired = r.timer - ((cycles - 1 - r.timer_set) >> r.shift) - 1 < 0;
        return expired && !r.expiry_seen ? 0x80 : 0;
    }
    switch (address & 3) {
    case 0: return r.port_a;
    case 1: return r.ddr_a;
    case 2: return r.port_b;
    default: return r.ddr_b;
    }
}

inline void set_timer(Riot& r, u8 value, u8 shift, i32 cycles) {
    r.timer = value;
    r.shift = shift;
    r.timer_set = cycles;
    r.expiry_seen = 0;
}

inline void riot_write(Riot& r, u32 address, u8 value, i32 cycles) {
    if ((address & 0x14) == 0x14) set_timer(r, value, TIMER_SHIFT[address & 3], cycles);
    else if ((address & 7) == 1) r.ddr_a = value;
    else if ((address & 7) == 3) r.ddr_b = value;
}

}  // namespace a2600
