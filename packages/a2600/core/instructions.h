// What an instruction does, as macros for the handlers in cpu.h: where its operand is, the operation, the cycles.
//
// The names of registers are those of local variables of `run`, which the compiler keeps in the processor's registers.
#pragma once

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
