// The documented instructions: opcode, operation, addressing mode. Others are in cpu.h, `rare`.
#pragma once

#define ACCUMULATOR_OPS(X, OP, BASE)                                                                               \
    X(BASE + 0x01, OP, IZX) X(BASE + 0x05, OP, ZP) X(BASE + 0x09, OP, IMM) X(BASE + 0x0d, OP, ABS)                 \
    X(BASE + 0x11, OP, IZY) X(BASE + 0x15, OP, ZPX) X(BASE + 0x19, OP, ABSY) X(BASE + 0x1d, OP, ABSX)

#define READ_OPS(X)                                                                                                \
    ACCUMULATOR_OPS(X, ORA, 0x00) ACCUMULATOR_OPS(X, AND, 0x20) ACCUMULATOR_OPS(X, EOR, 0x40)                       \
    ACCUMULATOR_OPS(X, ADC, 0x60) ACCUMULATOR_OPS(X, LDA, 0xa0) ACCUMULATOR_OPS(X, CMP, 0xc0)                       \
    ACCUMULATOR_OPS(X, SBC, 0xe0)                                                                                  \
    X(0xa2, LDX, IMM) X(0xa6, LDX, ZP) X(0xae, LDX, ABS) X(0xb6, LDX, ZPY) X(0xbe, LDX, ABSY)                       \
    X(0xa0, LDY, IMM) X(0xa4, LDY, ZP) X(0xac, LDY, ABS) X(0xb4, LDY, ZPX) X(0xbc, LDY, ABSX)                       \
    X(0xe0, CPX, IMM) X(0xe4, CPX, ZP) X(0xec, CPX, ABS)                                                           \
    X(0xc0, CPY, IMM) X(0xc4, CPY, ZP) X(0xcc, CPY, ABS)                                                           \
    X(0x24, BIT, ZP) X(0x2c, BIT, ABS)

// Variants of reads whose address is known: TIA instead of RAM, a constant of the cartridge.
#define READ_VARIANTS(X)                                                                                           \
    X(0, ORA, ZPIO) X(0, AND, ZPIO) X(0, EOR, ZPIO) X(0, ADC, ZPIO) X(0, LDA, ZPIO) X(0, CMP, ZPIO) X(0, SBC, ZPIO) \
    X(0, LDX, ZPIO) X(0, LDY, ZPIO) X(0, CPX, ZPIO) X(0, CPY, ZPIO) X(0, BIT, ZPIO)                                 \
    X(0, ORA, CONST) X(0, AND, CONST) X(0, EOR, CONST) X(0, ADC, CONST) X(0, LDA, CONST) X(0, CMP, CONST)           \
    X(0, SBC, CONST) X(0, LDX, CONST) X(0, LDY, CONST) X(0, CPX, CONST) X(0, CPY, CONST) X(0, BIT, CONST)

#define STORE_OPS(X)                                                                                               \
    X(0x81, STA, IZX) X(0x85, STA, ZP) X(0x8d, STA, ABS) X(0x91, STA, IZY) X(0x95, STA, ZPX) X(0x99, STA, ABSY)   \
    X(0x9d, STA, ABSX) X(0x86, STX, ZP) X(0x8e, STX, ABS) X(0x96, STX, ZPY)                                         \
    X(0x84, STY, ZP) X(0x8c, STY, ABS) X(0x94, STY, ZPX)
#define STORE_VARIANTS(X) X(0, STA, ZPIO) X(0, STX, ZPIO) X(0, STY, ZPIO)

#define MODIFY_MODES(X, OP, BASE) X(BASE, OP, ZP) X(BASE + 0x08, OP, ABS) X(BASE + 0x10, OP, ZPX) X(BASE + 0x18, OP, ABSX)
#define MODIFY_OPS(X)                                                                                              \
    MODIFY_MODES(X, ASL, 0x06) MODIFY_MODES(X, ROL, 0x26) MODIFY_MODES(X, LSR, 0x46) MODIFY_MODES(X, ROR, 0x66)     \
    MODIFY_MODES(X, DEC, 0xc6) MODIFY_MODES(X, INC, 0xe6)
#define MODIFY_VARIANTS(X)                                                                                         \
    X(0, ASL, ZPIO) X(0, ROL, ZPIO) X(0, LSR, ZPIO) X(0, ROR, ZPIO) X(0, DEC, ZPIO) X(0, INC, ZPIO)

#define IMPLIED_OPS(X)                                                                                             \
    X(0x0a, ASLA) X(0x2a, ROLA) X(0x4a, LSRA) X(0x6a, RORA) X(0xaa, TAX) X(0xa8, TAY) X(0x8a, TXA) X(0x98, TYA)      \
    X(0xba, TSX) X(0x9a, TXS) X(0xca, DEX) X(0x88, DEY) X(0xe8, INX) X(0xc8, INY) X(0x18, CLC) X(0x38, SEC)          \
    X(0x58, CLI) X(0x78, SEI) X(0xd8, CLD) X(0xf8, SED) X(0xb8, CLV) X(0xea, NOP)

#define BRANCH_OPS(X)                                                                                              \
    X(0x10, BPL) X(0x30, BMI) X(0x50, BVC) X(0x70, BVS) X(0x90, BCC) X(0xb0, BCS) X(0xd0, BNE) X(0xf0, BEQ)

#define CONTROL_OPS(X)                                                                                             \
    X(0x48, PHA) X(0x08, PHP) X(0x68, PLA) X(0x28, PLP) X(0x20, JSR) X(0x60, RTS) X(0x40, RTI) X(0x00, BRK)          \
    X(0x4c, JMP) X(0x6c, JMPI)
