// 6507: fetch, decode, execute. Instructions are decoded once for each cartridge; a handler runs one of them.
//
// All cycles of an instruction are counted before its operand is read or written.
#pragma once

#include "cartridge.h"
#include "opcodes.h"
#include "riot.h"
#include "tia.h"

namespace a2600 {

#define HANDLER_NAME(code, op, mode) H_##op##_##mode,
#define HANDLER_PLAIN(code, op) H_##op,
#define HANDLER_FAR(code, op) H_##op, H_##op##_FAR,
enum Handler : i32 {
    H_RARE,      // undocumented instructions
    H_FETCH,     // read the instruction byte by byte: RAM, switching addresses, ends of banks
    H_RESYNC,    // behind the end of a bank
    H_WAIT_BNE,  // LDA INTIM; BNE or BPL back to it
    H_WAIT_BPL,
    READ_OPS(HANDLER_NAME) READ_VARIANTS(HANDLER_NAME) STORE_OPS(HANDLER_NAME) STORE_VARIANTS(HANDLER_NAME)
    MODIFY_OPS(HANDLER_NAME) MODIFY_VARIANTS(HANDLER_NAME) IMPLIED_OPS(HANDLER_PLAIN) BRANCH_OPS(HANDLER_FAR)
    CONTROL_OPS(HANDLER_PLAIN)
    H_COUNT
};

// For each opcode its handler, and the variant for an operand in TIA (zero page) or a constant (absolute).
struct Decoding {
    i16 handler[256], variant[256];
    u8 length[256];
    u8 branch[256];

    Decoding() {
        for (int code = 0; code < 256; code++) {
            handler[code] = variant[code] = H_RARE;
            branch[code] = (code & 0x1f) == 0x10;
            int low = code & 0x1f;
            bool two_bytes = (low & 0x0f) >= 0x04 && (low & 0x0f) <= 0x07;
            two_bytes |= low == 0x10 || low == 0x11 || low == 0x13 || low == 0x01 || low == 0x03 || low == 0x09 || low == 0x0b;
            two_bytes |= low == 0x00 && code >= 0x80;
            two_bytes |= low == 0x02 && code >= 0x80;
            bool three_bytes = low >= 0x0c && low <= 0x0f;
            three_bytes |= low >= 0x1c || low == 0x19 || low == 0x1b || code == 0x20;
            length[code] = three_bytes ? 3 : two_bytes ? 2 : 1;
        }
#define DECODE_MODE(code, op, mode) handler[code] = variant[code] = H_##op##_##mode;
#define DECODE_PLAIN(code, op) handler[code] = variant[code] = H_##op;
#define DECODE_FAR(code, op) handler[code] = H_##op, variant[code] = H_##op##_FAR;
        READ_OPS(DECODE_MODE) STORE_OPS(DECODE_MODE) MODIFY_OPS(DECODE_MODE)
        IMPLIED_OPS(DECODE_PLAIN) BRANCH_OPS(DECODE_FAR) CONTROL_OPS(DECODE_PLAIN)
#define VARIANT_ZPIO(op) for_handler(H_##op##_ZP, H_##op##_ZPIO);
#define VARIANT_CONST(op) for_handler(H_##op##_ABS, H_##op##_CONST);
#define EACH_READ(X) X(ORA) X(AND) X(EOR) X(ADC) X(LDA) X(CMP) X(SBC) X(LDX) X(LDY) X(CPX) X(CPY) X(BIT)
        EACH_READ(VARIANT_ZPIO) EACH_READ(VARIANT_CONST)
        VARIANT_ZPIO(STA) VARIANT_ZPIO(STX) VARIANT_ZPIO(STY)
        VARIANT_ZPIO(ASL) VARIANT_ZPIO(ROL) VARIANT_ZPIO(LSR) VARIANT_ZPIO(ROR) VARIANT_ZPIO(DEC) VARIANT_ZPIO(INC)
    }

    void for_handler(i32 plain, i32 other) {
        for (int code = 0; code < 256; code++) {
            if (handler[code] == plain) variant[code] = i16(other);
        }
    }
};

inline const Decoding DECODING;

struct Labels {
    i32 offset[H_COUNT];
};

// One instruction at `pc`; `constant` is the byte at its absolute address, or -1 if that may change.
inline Op decode(const Labels& labels, u8 opcode, u8 low, u8 high, u32 pc, i32 constant, bool far) {
    Op op = {labels.offset[DECODING.handler[opcode]], low, high, opcode};
    i32 handler = DECODING.handler[opcode], variant = DECODING.variant[opcode];
    if (DECODING.branch[opcode]) {
        u32 next = pc + 2, target = next + u32(i32(i8(low)));
        op.high = (next ^ target) & 0xff00 ? 4 : 3;  // cycles if taken
        if (far) op.code = labels.offset[variant];
    } else if (variant != handler && handler != H_RARE) {
        bool absolute = DECODING.length[opcode] == 3;
        if (absolute && constant >= 0) {
            op.code = labels.offset[variant];
            op.low = u8(constant);
        }
        if (!absolute && low < 0x80) op.code = labels.offset[variant];
    }
    return op;
}

// Decode a cartridge: every byte as if an instruction began there.
inline void decode_game(Game& game, const Labels& labels) {
    u32 size = bank_size(game.kind), stride = size + OPS_EXTRA;
    game.ops = std::make_unique<Op[]>(size_t(game.banks) * stride);
    for (u32 bank = 0; bank < u32(game.banks); bank++) {
        const u8* bytes = game.rom + bank * size;
        Op* ops = game.ops.get() + bank * stride;
        for (u32 at = 0; at < stride; at++) {
            if (at >= size) {
                ops[at] = {labels.offset[H_RESYNC], 0, 0, 0};
                continue;
            }
            u8 opcode = bytes[at], length = DECODING.length[opcode];
            bool split = at + length > size, hot = false;
            u32 address = game.kind == Kind::E0 ? 0xc00 + at : at;  // of E0 as if it were the last window
            for (u32 byte = 0; byte < length; byte++) hot |= is_hotspot(game.kind, address + byte);
            if (split || hot) {
                ops[at] = {labels.offset[H_FETCH], 0, 0, 0};
                continue;
            }
            u8 low = length > 1 ? bytes[at + 1] : 0, high = length > 2 ? bytes[at + 2] : 0;
            u32 operand = u32(high) << 8 | low;
            i32 constant = -1;
            if (length == 3 && (operand & 0x1000) && !is_hotspot(game.kind, operand)) {
                if (game.kind != Kind::E0) constant = game.rom[bank * 4096 + (operand & 0xfff)];
                else if ((operand & 0xc00) == 0xc00) constant = game.rom[7 * 1024 + (operand & 0x3ff)];
            }
            i32 target = i32(at) + 2 + i8(low);
            ops[at] = decode(labels, opcode, low, high, at, constant, target < 0 || target >= i32(size));
            // LDA INTIM; BNE or BPL back to it
            if (opcode == 0xad && operand == 0x284 && at + 5 <= size && bytes[at + 4] == 0xfb && !hot &&
                ((at + 5) & 0xff00) == (at & 0xff00)) {
                if (bytes[at + 3] == 0xd0) ops[at].code = labels.offset[H_WAIT_BNE];
                if (bytes[at + 3] == 0x10) ops[at].code = labels.offset[H_WAIT_BPL];
            }
        }
    }
}

// What runs: a console, its game, and where its picture goes.
struct Machine {
    State& state;
    Picture picture;
    bool switched;
};

template <Kind K>
ALWAYS_INLINE Kind kind_of(const Game& game) {
    return K == Kind::Any ? game.kind : K;
}

template <Kind K>
ALWAYS_INLINE const u8* cartridge_bytes(const Game& game, const Play& play, u32 address) {
    if (kind_of<K>(game) == Kind::E0) return game.rom + play.bank[address >> 10 & 3] * 1024 + (address & 0x3ff);
    if (K == Kind::Flat) return game.rom + (address & 0xfff);
    return game.rom + play.bank[0] * 4096 + (address & 0xfff);
}

NEVER_INLINE inline i32 tia_poke(State& state, const Picture& picture, u32 address, u8 value, i32 cycles) {
    return tia_write(state, picture, address, value, cycles);
}

// `bus`: the last byte on the bus, of which TIA leaves the low six bits.
template <Kind K>
NEVER_INLINE u8 peek_slow(Machine& m, u32 address, i32 cycles, u8 bus) {
    State& state = m.state;
    if (address & 0x1000) {
        if (is_hotspot(kind_of<K>(*m.picture.game), address)) {
            switch_bank(kind_of<K>(*m.picture.game), state.play, address);
            m.switched = true;
        }
        return *cartridge_bytes<K>(*m.picture.game, state.play, address);
    }
    if (!(address & 0x80)) return u8(tia_read(state, m.picture, address, cycles) | (bus & 0x3f));
    if (!(address & 0x200)) return state.riot.ram[address & 127];
    return riot_read(state.riot, address, cycles);
}

template <Kind K>
ALWAYS_INLINE u8 peek(Machine& m, u32 address, i32 cycles, u8 bus) {
    if (LIKELY((address & 0x1000) && !is_hotspot(kind_of<K>(*m.picture.game), address))) {
        return *cartridge_bytes<K>(*m.picture.game, m.state.play, address);
    }
    if ((address & 0x1280) == 0x80) return m.state.riot.ram[address & 127];
    return peek_slow<K>(m, address, cycles, bus);
}

template <Kind K>
ALWAYS_INLINE i32 poke(Machine& m, u32 address, u8 value, i32 cycles) {
    State& state = m.state;
    if (address & 0x1000) {
        if (is_hotspot(kind_of<K>(*m.picture.game), address)) {
            switch_bank(kind_of<K>(*m.picture.game), state.play, address);
            m.switched = true;
        }
        return cycles;
    }
    if (!(address & 0x80)) return tia_poke(state, m.picture, address, value, cycles);
    if (!(address & 0x200)) state.riot.ram[address & 127] = value;
    else riot_write(state.riot, address, value, cycles);
    return cycles;
}

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

// The rest of the instruction set: read-modify-write combinations, loads of two registers, and instructions that do
// nothing. Returns the cycles, or -1 if the instruction stops the processor.
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

// Iterations of the waiting loop that can be skipped: the timer does not reach 0 in them.
inline i32 skip_wait(const Riot& r, i32 cycles) {
    if (r.shift < 3) return 0;
    i32 passed = cycles + 4 - 1 - r.timer_set, left = i32(r.timer - 1) << r.shift;
    i32 value = r.timer - (passed >> r.shift) - 1;
    if (value < 2 || value > 127 || passed < 0) return 0;
    return (left - passed) / 7;
}

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

#define PC() (pc_base + u32(ip - base))
#define GO(target)                                                                      \
    {                                                                                   \
        u32 go_to = (target) & 0xffff;                                                  \
        if (COUNTS || UNLIKELY(!(go_to & 0x1000))) {                                    \
            base = fetch_ops<K>();                                                            \
            pc_base = go_to & 0xf000;                                                   \
            ip = base + (go_to & 0xfff);                                                \
        } else if (K == Kind::E0) {                                                     \
            base = all_ops + state.play.bank[go_to >> 10 & 3] * (1024 + OPS_EXTRA);     \
            pc_base = go_to & 0xfc00;                                                   \
            ip = base + (go_to & 0x3ff);                                                \
        } else {                                                                        \
            base = K == Kind::Flat ? all_ops : all_ops + state.play.bank[0] * (4096 + OPS_EXTRA); \
            pc_base = go_to & 0xf000;                                                   \
            ip = base + (go_to & 0xfff);                                                \
        }                                                                               \
    }
#define DISPATCH                                                \
    {                                                           \
        op = *ip;                                               \
        goto *(void*)((char*)&&L_RARE + op.code);               \
    }
#define NEXT(length)                                            \
    {                                                           \
        ip += length;                                           \
        DISPATCH                                                \
    }
#define NEXT_SWITCHED(length)                                   \
    {                                                           \
        ip += length;                                           \
        if (K != Kind::Flat && UNLIKELY(m.switched)) goto switched; \
        DISPATCH                                                \
    }
#define NEXT_WRITTEN(length)                                    \
    {                                                           \
        ip += length;                                           \
        if (UNLIKELY(state.tia.frame_over)) goto done;          \
        if (K != Kind::Flat && UNLIKELY(m.switched)) goto switched; \
        DISPATCH                                                \
    }
#define STATUS() (((nz & 0x180) ? 0x80 : 0) | overflow << 6 | 0x20 | other | (u8(nz) ? 0 : 2) | carry)
#define SET_STATUS(value)                                       \
    {                                                           \
        u32 popped = (value);                                   \
        carry = popped & 1;                                     \
        overflow = popped >> 6 & 1;                             \
        other = popped & (BREAK | DECIMAL | INTERRUPT);         \
        nz = popped & 2 ? (popped & 0x80) << 1 : (popped & 0x80) | 1; \
    }
#define PUSH(value)                                             \
    {                                                           \
        u32 pushed = (value);                                   \
        if (LIKELY(s & 0x80)) ram[s & 127] = u8(pushed);        \
        else cycles = tia_poke(state, m.picture, s, u8(pushed), cycles); \
        s = (s - 1) & 0xff;                                     \
    }
#define PULL(into)                                                                          \
    {                                                                                       \
        u32 top = s;                                                                        \
        s = (s + 1) & 0xff;                                                                 \
        if (LIKELY(s & 0x80)) into = ram[s & 127];                                          \
        else into = peek<K>(m, s, cycles, peek<K>(m, top, cycles, u8(top)));                \
    }
#define ZERO(at) (((at) & 0x80) ? u32(ram[(at) & 127]) : u32(peek<K>(m, (at) & 0xff, cycles, op.low)))

// Where operands are: `where` is the address, `bus` the last byte on the bus.
#define AT_ZPX u32 where = (op.low + x) & 0xff;
#define AT_ZPY u32 where = (op.low + y) & 0xff;
#define AT_ABS u32 where = u32(op.high) << 8 | op.low, bus = op.high;
#define AT_ABSX u32 where = ((u32(op.high) << 8 | op.low) + x) & 0xffff, bus = op.high, crossed = (op.low + x) >> 8;
#define AT_ABSY u32 where = ((u32(op.high) << 8 | op.low) + y) & 0xffff, bus = op.high, crossed = (op.low + y) >> 8;
#define AT_IZX                                                                             \
    u32 pointer_at = op.low + x, bus = ZERO(pointer_at + 1);                                \
    u32 where = bus << 8 | ZERO(pointer_at);
#define AT_IZY                                                                             \
    u32 bus = ZERO(op.low + 1u), pointer_low = ZERO(u32(op.low));                           \
    u32 crossed = (pointer_low + y) >> 8, where = ((bus << 8 | pointer_low) + y) & 0xffff;

#define READ_IMM cycles += 2; u32 v = op.low;
#define READ_ZP cycles += 3; u32 v = ram[op.low & 127];
#define READ_ZPIO cycles += 3; u32 v = tia_read(state, m.picture, op.low, cycles) | (op.low & 0x3f);
#define READ_ZPX AT_ZPX cycles += 4; u32 v = where & 0x80 ? ram[where & 127] : peek<K>(m, where, cycles, op.low);
#define READ_ZPY AT_ZPY cycles += 4; u32 v = where & 0x80 ? ram[where & 127] : peek<K>(m, where, cycles, op.low);
#define READ_CONST cycles += 4; u32 v = op.low;
#define READ_ABS AT_ABS cycles += 4; u32 v = peek<K>(m, where, cycles, u8(bus));
#define READ_ABSX AT_ABSX cycles += i32(4 + crossed); u32 v = peek<K>(m, where, cycles, u8(bus));
#define READ_ABSY AT_ABSY cycles += i32(4 + crossed); u32 v = peek<K>(m, where, cycles, u8(bus));
#define READ_IZX AT_IZX cycles += 6; u32 v = peek<K>(m, where, cycles, u8(bus));
#define READ_IZY AT_IZY cycles += i32(5 + crossed); u32 v = peek<K>(m, where, cycles, u8(bus));
#define AFTER_IMM NEXT(2)
#define AFTER_ZP NEXT(2)
#define AFTER_ZPIO NEXT(2)
#define AFTER_ZPX NEXT(2)
#define AFTER_ZPY NEXT(2)
#define AFTER_CONST NEXT(3)
#define AFTER_ABS NEXT_SWITCHED(3)
#define AFTER_ABSX NEXT_SWITCHED(3)
#define AFTER_ABSY NEXT_SWITCHED(3)
#define AFTER_IZX NEXT_SWITCHED(2)
#define AFTER_IZY NEXT_SWITCHED(2)

#define DO_LDA a = nz = v;
#define DO_LDX x = nz = v;
#define DO_LDY y = nz = v;
#define DO_ORA a = nz = a | v;
#define DO_AND a = nz = a & v;
#define DO_EOR a = nz = a ^ v;
#define DO_CMP carry = a >= v; nz = (a - v) & 0xff;
#define DO_CPX carry = x >= v; nz = (x - v) & 0xff;
#define DO_CPY carry = y >= v; nz = (y - v) & 0xff;
#define DO_BIT nz = (a & v) | (v & 0x80) << 1; overflow = v >> 6 & 1;
#define DO_ADC                                                                              \
    if (LIKELY(!(other & DECIMAL))) {                                                       \
        u32 sum = a + v + carry;                                                            \
        overflow = ((a ^ sum) & (v ^ sum)) >> 7 & 1;                                        \
        carry = sum >> 8;                                                                   \
        a = nz = sum & 0xff;                                                                \
    } else {                                                                                \
        u32 sum = u32(bcd(i32(a)) + bcd(i32(v))) + carry, result = ARITHMETIC.to_bcd[sum & 0xff]; \
        carry = sum > 99;                                                                   \
        overflow = (a ^ result) >> 7;                                                       \
        a = nz = result;                                                                    \
    }
#define DO_SBC                                                                              \
    if (LIKELY(!(other & DECIMAL))) {                                                       \
        u32 sum = a + (v ^ 0xff) + carry;                                                   \
        overflow = ((a ^ sum) & (v ^ 0xff ^ sum)) >> 7 & 1;                                 \
        carry = sum >> 8;                                                                   \
        a = nz = sum & 0xff;                                                                \
    } else {                                                                                \
        i32 rest = bcd(i32(a)) - bcd(i32(v)) - i32(1 - carry);                               \
        if (rest < 0) rest += 100;                                                          \
        u32 result = ARITHMETIC.to_bcd[rest & 0xff];                                        \
        carry = a >= v + 1 - carry;                                                         \
        overflow = (a ^ result) >> 7;                                                       \
        a = nz = result;                                                                    \
    }

#define VALUE_STA a
#define VALUE_STX x
#define VALUE_STY y
#define STORE_ZP(value) cycles += 3; ram[op.low & 127] = u8(value); NEXT(2)
#define STORE_ZPIO(value) cycles = tia_write(state, m.picture, op.low, u8(value), cycles + 3); NEXT_WRITTEN(2)
#define STORE_ZPX(value) AT_ZPX cycles = poke<K>(m, where, u8(value), cycles + 4); NEXT_WRITTEN(2)
#define STORE_ZPY(value) AT_ZPY cycles = poke<K>(m, where, u8(value), cycles + 4); NEXT_WRITTEN(2)
#define STORE_ABS(value) AT_ABS (void)bus; cycles = poke<K>(m, where, u8(value), cycles + 4); NEXT_WRITTEN(3)
#define STORE_ABSX(value) AT_ABSX (void)bus; (void)crossed; cycles = poke<K>(m, where, u8(value), cycles + 5); NEXT_WRITTEN(3)
#define STORE_ABSY(value) AT_ABSY (void)bus; (void)crossed; cycles = poke<K>(m, where, u8(value), cycles + 5); NEXT_WRITTEN(3)
#define STORE_IZX(value) AT_IZX cycles = poke<K>(m, where, u8(value), cycles + 6); NEXT_WRITTEN(2)
#define STORE_IZY(value) AT_IZY (void)crossed; cycles = poke<K>(m, where, u8(value), cycles + 6); NEXT_WRITTEN(2)

#define DO_ASL carry = v >> 7; v = v << 1 & 0xff; nz = v;
#define DO_ROL { u32 out = v >> 7; v = (v << 1 | carry) & 0xff; carry = out; nz = v; }
#define DO_LSR carry = v & 1; v >>= 1; nz = v;
#define DO_ROR { u32 out = v & 1; v = v >> 1 | carry << 7; carry = out; nz = v; }
#define DO_INC v = (v + 1) & 0xff; nz = v;
#define DO_DEC v = (v - 1) & 0xff; nz = v;
#define MODIFY_ZP(DO) cycles += 5; u32 v = ram[op.low & 127]; DO ram[op.low & 127] = u8(v); NEXT(2)
#define MODIFY_AT(where, bus, DO, length)                                                   \
    u32 v = peek<K>(m, where, cycles, u8(bus)); DO cycles = poke<K>(m, where, u8(v), cycles); NEXT_WRITTEN(length)
#define MODIFY_ZPIO(DO) cycles += 5; MODIFY_AT(op.low, op.low, DO, 2)
#define MODIFY_ZPX(DO) AT_ZPX cycles += 6; MODIFY_AT(where, op.low, DO, 2)
#define MODIFY_ABS(DO) AT_ABS cycles += 6; MODIFY_AT(where, bus, DO, 3)
#define MODIFY_ABSX(DO) AT_ABSX (void)crossed; cycles += 7; MODIFY_AT(where, bus, DO, 3)

#define READ_HANDLER(code, OP, MODE) L_##OP##_##MODE : { READ_##MODE DO_##OP AFTER_##MODE }
#define STORE_HANDLER(code, OP, MODE) L_##OP##_##MODE : { STORE_##MODE(VALUE_##OP) }
#define MODIFY_HANDLER(code, OP, MODE) L_##OP##_##MODE : { MODIFY_##MODE(DO_##OP) }

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
