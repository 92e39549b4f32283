// 6507: fetch, decode, execute. Instructions are decoded once for each cartridge (decode.h); a handler runs one of them.
//
// All cycles of an instruction are counted before its operand is read or written.
#pragma once

#include "instructions.h"
#include "undocumented.h"

namespace a2600 {

struct Arithmetic {  // decimal digits
    u8 to_bcd[256];
    Arithmetic() {
        for (int value = 0; value < 256; value++) to_bcd[value] = u8((value % 100 / 10) << 4 | value % 10);
    }
};

inline const Arithmetic ARITHMETIC;

constexpr u8 BREAK = 0x10, DECIMAL = 0x08, INTERRUPT = 0x04;
constexpr i32 MAX_INSTRUCTIONS = 25000;  // of a frame
constexpr i32 MAX_CYCLES = 45000;  // fewer than MAX_INSTRUCTIONS take; such a frame is run again and counted

template <Kind K>
const Labels& labels_of();
template <Kind K>
const Op* fetch_ops();

// Run until the frame is over. With `labels` only the handlers' places are stored there. For Kind::Any each instruction is
// fetched byte by byte, and MAX_INSTRUCTIONS are the end.
template <Kind K>
NEVER_INLINE void run(Machine* machine, Labels* labels) {
    constexpr bool COUNTS = K == Kind::Any;
    if (labels) {
#define LABEL_MODE(code, op, mode) labels->offset[H_##op##_##mode] = i32((char*)&&L_##op##_##mode - (char*)&&L_RARE);
#define LABEL_PLAIN(code, op) labels->offset[H_##op] = i32((char*)&&L_##op - (char*)&&L_RARE);
#define LABEL_FAR(code, op) LABEL_PLAIN(code, op) labels->offset[H_##op##_FAR] = i32((char*)&&L_##op##_FAR - (char*)&&L_RARE);
        LABEL_PLAIN(0, RARE) LABEL_PLAIN(0, FETCH) LABEL_PLAIN(0, RESYNC) LABEL_PLAIN(0, WAIT_BNE) LABEL_PLAIN(0, WAIT_BPL)
        READ_OPS(LABEL_MODE) READ_VARIANTS(LABEL_MODE) STORE_OPS(LABEL_MODE) STORE_VARIANTS(LABEL_MODE)
        MODIFY_OPS(LABEL_MODE) MODIFY_VARIANTS(LABEL_MODE) IMPLIED_OPS(LABEL_PLAIN) BRANCH_OPS(LABEL_FAR)
        CONTROL_OPS(LABEL_PLAIN)
        return;
    }
    Machine& m = *machine;
    State& state = m.state;
    const Game& game = *m.picture.game;
    u8* const ram = state.riot.ram;
    const Op* const all_ops = game.ops.get();
    u32 a = state.cpu.a, x = state.cpu.x, y = state.cpu.y, s = state.cpu.s;
    u32 nz = state.cpu.nz, carry = state.cpu.carry, overflow = state.cpu.overflow, other = state.cpu.other;
    i32 cycles = state.cpu.cycles, left = MAX_INSTRUCTIONS;
    const i32 limit = cycles + MAX_CYCLES;
    const Op *base, *ip;
    u32 pc_base;
    Op op;

    GO(state.cpu.pc)
    DISPATCH

    READ_OPS(READ_HANDLER)
    READ_VARIANTS(READ_HANDLER)
    STORE_OPS(STORE_HANDLER)
    STORE_VARIANTS(STORE_HANDLER)
    MODIFY_OPS(MODIFY_HANDLER)
    MODIFY_VARIANTS(MODIFY_HANDLER)

#define IMPLIED(OP, BODY) L_##OP : { cycles += 2; BODY; NEXT(1) }
    IMPLIED(ASLA, carry = a >> 7; a = nz = a << 1 & 0xff)
    IMPLIED(ROLA, u32 out = a >> 7; a = nz = (a << 1 | carry) & 0xff; carry = out)
    IMPLIED(LSRA, carry = a & 1; a = nz = a >> 1)
    IMPLIED(RORA, u32 out = a & 1; a = nz = a >> 1 | carry << 7; carry = out)
    IMPLIED(TAX, x = nz = a)
    IMPLIED(TAY, y = nz = a)
    IMPLIED(TXA, a = nz = x)
    IMPLIED(TYA, a = nz = y)
    IMPLIED(TSX, x = nz = s)
    IMPLIED(TXS, s = x)
    IMPLIED(DEX, x = nz = (x - 1) & 0xff)
    IMPLIED(DEY, y = nz = (y - 1) & 0xff)
    IMPLIED(INX, x = nz = (x + 1) & 0xff)
    IMPLIED(INY, y = nz = (y + 1) & 0xff)
    IMPLIED(CLC, carry = 0)
    IMPLIED(SEC, carry = 1)
    IMPLIED(CLI, other &= ~u32(INTERRUPT))
    IMPLIED(SEI, other |= INTERRUPT)
    IMPLIED(CLD, other &= ~u32(DECIMAL))
    IMPLIED(SED, other |= DECIMAL)
    IMPLIED(CLV, overflow = 0)
    IMPLIED(NOP, )

#define BRANCH(OP, CONDITION)                                                               \
    L_##OP : {                                                                              \
        if (CONDITION) {                                                                    \
            cycles += op.high;                                                              \
            ip += 2 + i8(op.low);                                                           \
            if (!COUNTS && UNLIKELY(cycles > limit)) goto done;                                   \
            DISPATCH                                                                        \
        }                                                                                   \
        cycles += 2;                                                                        \
        NEXT(2)                                                                             \
    }                                                                                       \
    L_##OP##_FAR : {                                                                        \
        cycles += 2;                                                                        \
        if (!(CONDITION)) NEXT(2)                                                           \
        cycles += op.high - 2;                                                              \
        u32 target = PC() + 2 + u32(i32(i8(op.low)));                                       \
        GO(target)                                                                          \
        if (!COUNTS && UNLIKELY(cycles > limit)) goto done;                                       \
        DISPATCH                                                                            \
    }
    BRANCH(BPL, !(nz & 0x180))
    BRANCH(BMI, nz & 0x180)
    BRANCH(BVC, !overflow)
    BRANCH(BVS, overflow)
    BRANCH(BCC, !carry)
    BRANCH(BCS, carry)
    BRANCH(BNE, u8(nz))
    BRANCH(BEQ, !u8(nz))

L_PHA : {
    cycles += 3;
    PUSH(a)
    NEXT_WRITTEN(1)
}
L_PHP : {
    cycles += 3;
    PUSH(STATUS())
    NEXT_WRITTEN(1)
}
L_PLA : {
    cycles += 4;
    PULL(a)
    nz = a;
    NEXT(1)
}
L_PLP : {
    cycles += 4;
    u32 status;
    PULL(status)
    SET_STATUS(status)
    NEXT(1)
}
L_JSR : {
    cycles += 6;
    u32 back = PC() + 2;
    PUSH(back >> 8 & 0xff)
    PUSH(back & 0xff)
    select_by_address(kind_of<K>(game), state.play, op.high);
    GO(u32(op.high) << 8 | op.low)
    if (UNLIKELY(state.tia.frame_over || (!COUNTS && cycles > limit))) goto done;
    DISPATCH
}
L_RTS : {
    cycles += 6;
    u32 low, high;
    PULL(low)
    PULL(high)
    select_by_address(kind_of<K>(game), state.play, high);
    GO((high << 8 | low) + 1)
    if (!COUNTS && UNLIKELY(cycles > limit)) goto done;
    DISPATCH
}
L_RTI : {
    cycles += 6;
    u32 status, low, high;
    PULL(status)
    SET_STATUS(status)
    PULL(low)
    PULL(high)
    GO(high << 8 | low)
    if (!COUNTS && UNLIKELY(cycles > limit)) goto done;
    DISPATCH
}
L_BRK : {
    cycles += 7;
    u32 back = PC() + 2;
    other |= BREAK;
    PUSH(back >> 8 & 0xff)
    PUSH(back & 0xff)
    PUSH(STATUS())
    other |= INTERRUPT;
    u32 vector = peek<K>(m, 0x1ffe, cycles, 0);
    vector |= u32(peek<K>(m, 0x1fff, cycles, 0)) << 8;
    m.switched = false;
    GO(vector)
    if (UNLIKELY(state.tia.frame_over || (!COUNTS && cycles > limit))) goto done;
    DISPATCH
}
L_JMP : {
    cycles += 3;
    GO(u32(op.high) << 8 | op.low)
    if (!COUNTS && UNLIKELY(cycles > limit)) goto done;
    DISPATCH
}
L_JMPI : {
    cycles += 5;
    u32 at = u32(op.high) << 8 | op.low;
    u32 target = peek<K>(m, at, cycles, op.high);
    target |= u32(peek<K>(m, (at & 0xff00) | ((at + 1) & 0xff), cycles, op.high)) << 8;
    m.switched = false;
    GO(target)
    if (!COUNTS && UNLIKELY(cycles > limit)) goto done;
    DISPATCH
}
L_WAIT_BNE : {
    i32 skipped = skip_wait(state.riot, cycles);
    cycles += 7 * skipped + 4;
    a = nz = read_timer(state.riot, cycles);
    NEXT(3)
}
L_WAIT_BPL : {
    i32 skipped = skip_wait(state.riot, cycles);
    cycles += 7 * skipped + 4;
    a = nz = read_timer(state.riot, cycles);
    NEXT(3)
}
L_RARE : {
    Registers r = {a, x, y, s, nz, carry, overflow, other};
    i32 after = rare<K>(m, r, op, cycles);
    if (after < 0) {
        state.cpu.jammed = 1;
        goto done;
    }
    cycles = after;
    a = r.a, x = r.x, y = r.y, s = r.s, nz = r.nz, carry = r.carry, overflow = r.overflow;
    u32 length = DECODING.length[op.target & 255];
    if (!COUNTS && UNLIKELY(cycles > limit)) {
        ip += length;
        goto done;
    }
    NEXT_WRITTEN(length)
}
L_FETCH : {
    if (COUNTS && !left--) goto done;
    u32 pc = PC() & 0xffff;
    u8 byte[3] = {peek<K>(m, pc, cycles, 0), 0, 0};
    u32 length = DECODING.length[byte[0]];
    for (u32 i = 1; i < length; i++) byte[i] = peek<K>(m, (pc + i) & 0xffff, cycles, byte[i - 1]);
    m.switched = false;
    GO(pc)
    // the loaded entry is only replaced, so that the handlers' steps stay within the entries of the bank
    op = decode(labels_of<K>(), byte[0], byte[1], byte[2], pc, -1, true);
    goto *(void*)((char*)&&L_RARE + op.code);
}
L_RESYNC : {
    u32 pc = PC();
    if (!COUNTS && UNLIKELY(cycles > limit)) goto done;
    GO(pc)
    DISPATCH
}
switched:
    m.switched = false;
    {
        u32 pc = PC();
        GO(pc)
        DISPATCH
    }
done:
    u32 pc = PC();
    state.cpu.pc = u16(pc);
    state.cpu.a = u8(a);
    state.cpu.x = u8(x);
    state.cpu.y = u8(y);
    state.cpu.s = u8(s);
    state.cpu.nz = u16(nz);
    state.cpu.carry = u8(carry);
    state.cpu.overflow = u8(overflow);
    state.cpu.other = u8(other);
    state.cpu.cycles = cycles;
}

template <Kind K>
const Labels& labels_of() {
    static const Labels labels = [] {
        Labels made;
        run<K>(nullptr, &made);
        return made;
    }();
    return labels;
}

// Where instructions outside the cartridge run: each is fetched byte by byte.
template <Kind K>
const Op* fetch_ops() {
    static const std::unique_ptr<Op[]> ops = [] {
        auto made = std::make_unique<Op[]>(4096 + OPS_EXTRA);
        for (u32 at = 0; at < 4096 + OPS_EXTRA; at++) {
            made[at] = {labels_of<K>().offset[at < 4096 ? H_FETCH : H_RESYNC], 0, 0, 0};
        }
        return made;
    }();
    return ops.get();
}

}  // namespace a2600
