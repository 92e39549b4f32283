// Decoding: each byte of a cartridge as if an instruction began there, once when it is loaded.
#pragma once

#include "cartridge.h"
#include "opcodes.h"

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

}  // namespace a2600
