// Undocumented instructions of the 6507: two operations at once, loads of two registers, and instructions without effect.
#pragma once

#include "bus.h"
#include "decode.h"

namespace a2600 {

// Returns the cycles, or -1 if the instruction stops the processor.
struct Registers {
    u32 a, x, y, s, nz, carry, overflow, other;
};

template <Kind K>
NEVER_INLINE i32 rare(Machine& m, Registers& r, const Op& op, i32 cycles) {
    u8 opcode = u8(op.target), low = op.low, high = op.high;
    u32 column = opcode & 0x1f, row = opcode >> 5, address = 0;
    u8* ram = m.state.riot.ram;
    auto zero = [&](u32 at) -> u32 { at &= 0xff; return at & 0x80 ? ram[at & 127] : peek<K>(m, at, cycles, low); };
    u8 bus = low;
    bool crossed = false, stores = row == 4;
    if (column == 0x02 || column == 0x12) {
        if (opcode >= 0x80 && column == 0x02) return cycles + 2;  // no operation with an operand
        return -1;
    }
    bool modifies = (opcode & 3) == 3 && row != 4 && row != 5 && column != 0x0b;
    switch (column) {
    case 0x03: address = zero(low + r.x) | zero(low + r.x + 1) << 8; bus = u8(address >> 8); cycles += modifies ? 8 : 6; break;
    case 0x13: {
        u32 pointer = zero(low) | zero(low + 1u) << 8;
        address = (pointer + r.y) & 0xffff;
        crossed = (pointer ^ address) & 0xff00;
        bus = u8(pointer >> 8);
        cycles += modifies ? 8 : stores ? 6 : 5 + crossed;
        break;
    }
    case 0x04: case 0x07: address = low; cycles += modifies ? 5 : 3; break;
    case 0x14: case 0x17:
        address = (low + ((row == 4 || row == 5) && column == 0x17 ? r.y : r.x)) & 0xff;
        cycles += modifies ? 6 : 4;
        break;
    case 0x0c: case 0x0f: address = u32(high) << 8 | low; bus = high; cycles += modifies ? 6 : 4; break;
    case 0x1b: case 0x1c: case 0x1e: case 0x1f: {
        u32 base = u32(high) << 8 | low;
        bool by_y = column == 0x1b || ((row == 4 || row == 5) && column != 0x1c);
        address = (base + (by_y ? r.y : r.x)) & 0xffff;
        crossed = (base ^ address) & 0xff00;
        bus = high;
        cycles += modifies ? 7 : stores ? 5 : 4 + crossed;
        break;
    }
    default: cycles += 2; break;  // immediate, implied
    }
    if (column == 0x0b || column == 0x00 || column == 0x09 || column == 0x1a) {
        u32 v = low;
        switch (opcode) {
        case 0x0b: case 0x2b: r.a &= v; r.nz = r.a; r.carry = r.a >> 7; break;
        case 0x4b: v &= r.a; r.carry = v & 1; r.a = r.nz = v >> 1; break;                            // ALR
        case 0x6b:                                                                                   // ARR
            r.a = r.nz = (v & r.a) >> 1 | r.carry << 7;
            r.carry = r.a >> 6 & 1;
            r.overflow = (r.a >> 6 ^ r.a >> 5) & 1;
            break;
        case 0x8b: r.a = r.nz = (r.a | 0xee) & r.x & v; break;                                        // unstable
        case 0xab: r.a = r.x = r.nz = (r.a | 0xee) & v; break;
        case 0xcb: { u32 both = r.a & r.x; r.carry = both >= v; r.x = r.nz = (both - v) & 0xff; break; }
        case 0xeb: {                                                                                 // SBC
            u32 sum = r.a + (v ^ 0xff) + r.carry;
            r.overflow = ((r.a ^ sum) & (v ^ 0xff ^ sum)) >> 7 & 1;
            r.carry = sum >> 8;
            r.a = r.nz = sum & 0xff;
            break;
        }
        default: break;
        }
        return cycles;
    }
    if ((opcode & 3) != 3 && opcode != 0x9c && opcode != 0x9e) {  // no operation, but the operand is read
        peek<K>(m, address, cycles, bus);
        return cycles;
    }
    switch (opcode) {
    case 0x83: case 0x87: case 0x8f: case 0x97: return poke<K>(m, address, u8(r.a & r.x), cycles);    // SAX
    case 0x93: case 0x9f: return poke<K>(m, address, u8(r.a & r.x & ((address >> 8) + 1)), cycles);
    case 0x9b: r.s = r.a & r.x; return poke<K>(m, address, u8(r.s & ((address >> 8) + 1)), cycles);
    case 0x9c: return poke<K>(m, address, u8(r.y & ((address >> 8) + 1)), cycles);
    case 0x9e: return poke<K>(m, address, u8(r.x & ((address >> 8) + 1)), cycles);
    case 0xbb: r.a = r.x = r.s = r.nz = peek<K>(m, address, cycles, bus) & r.s; return cycles;
    default: break;
    }
    u32 v = peek<K>(m, address, cycles, bus);
    u32 old_carry = r.carry;
    switch (row) {
    case 0: r.carry = v >> 7; v = v << 1 & 0xff; r.a |= v; r.nz = r.a; break;                         // SLO
    case 1: r.carry = v >> 7; v = (v << 1 | old_carry) & 0xff; r.a &= v; r.nz = r.a; break;           // RLA
    case 2: r.carry = v & 1; v >>= 1; r.a ^= v; r.nz = r.a; break;                                   // SRE
    case 3: case 7: {                                                                                // RRA, ISB
        if (row == 3) { r.carry = v & 1; v = v >> 1 | old_carry << 7; }
        else v = (v + 1) & 0xff;
        u32 operand = row == 3 ? v : v ^ 0xff, sum = r.a + operand + r.carry;
        r.overflow = ((r.a ^ sum) & (operand ^ sum)) >> 7 & 1;
        r.carry = sum >> 8;
        r.a = r.nz = sum & 0xff;
        break;
    }
    case 5: r.a = r.x = r.nz = v; return cycles;                                                     // LAX
    default: v = (v - 1) & 0xff; r.carry = r.a >= v; r.nz = (r.a - v) & 0xff; break;                  // DCP
    }
    return poke<K>(m, address, u8(v), cycles);
}

}  // namespace a2600
