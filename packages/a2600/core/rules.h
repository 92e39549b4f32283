// Rules: reward, lives and end of a game as functions of RAM, run by a small stack machine after each frame.
#pragma once

#include "game.h"

namespace a2600 {

// Instructions; games.py compiles the expressions to them.
enum Rule : i32 {
    R_END, R_CONST, R_RAM, R_BEFORE, R_SCORE0, R_LIVES0, R_STARTED, R_OVER, R_CHANGE,
    R_ADD, R_SUB, R_MUL, R_MOD, R_SHR, R_BITAND,
    R_EQ, R_NE, R_LT, R_LE, R_GT, R_GE, R_AND, R_OR, R_NOT, R_SELECT, R_MAX, R_MIN, R_ABS, R_NEG,
    R_BCD, R_LO, R_HI, R_D8, R_X8, R_BL, R_KO, R_POPCOUNT, R_COUNT,
};

struct Values {
    const u8 *ram, *before;
    i32 score0, lives0, started, over, change;
};

constexpr int RULE_DEPTH = 16;

// Stack effect of a rule instruction: values taken and left.
constexpr i8 RULE_TAKES[R_COUNT] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
                                    2, 2, 2, 2, 1, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

// Whether the program is safe to run: known instructions, operands in range, no stack overflow, one result.
inline bool valid_rule(const Rules& rules, i32 start) {
    int depth = 0;
    for (i32 at = start; at >= 0 && at < Rules::MAX; at++) {
        i32 code = rules.code[at];
        if (code < 0 || code >= R_COUNT || depth < RULE_TAKES[code]) return false;
        if (code == R_END) return depth == 1;
        depth += 1 - RULE_TAKES[code];
        if (depth > RULE_DEPTH) return false;
        if (code == R_CONST || code == R_RAM || code == R_BEFORE) {
            if (++at >= Rules::MAX) return false;
            if (code != R_CONST && (rules.code[at] < 0 || rules.code[at] > 127)) return false;
        }
    }
    return false;
}


inline i32 run_rule(const i32* code, const Values& values) {
    i32 stack[RULE_DEPTH + 1] = {0}, *top = stack;  // unsigned arithmetic: hostile RAM may overflow, and wraps
    for (;;) {
        i32 a = top[0], b = a;
        switch (*code++) {
        case R_END: return a;
        case R_CONST: *++top = *code++; break;
        case R_RAM: *++top = values.ram[*code++]; break;
        case R_BEFORE: *++top = values.before[*code++]; break;
        case R_SCORE0: *++top = values.score0; break;
        case R_LIVES0: *++top = values.lives0; break;
        case R_STARTED: *++top = values.started; break;
        case R_OVER: *++top = values.over; break;
        case R_CHANGE: *++top = values.change; break;
        case R_ADD: a = *--top; *top = i32(u32(a) + u32(b)); break;
        case R_SUB: a = *--top; *top = i32(u32(a) - u32(b)); break;
        case R_MUL: a = *--top; *top = i32(u32(a) * u32(b)); break;
        case R_MOD: a = *--top; *top = b > 0 ? (a % b < 0 ? a % b + b : a % b) : 0; break;
        case R_SHR: a = *--top; *top = a >> (b & 31); break;
        case R_BITAND: a = *--top; *top = a & b; break;
        case R_EQ: a = *--top; *top = a == b; break;
        case R_NE: a = *--top; *top = a != b; break;
        case R_LT: a = *--top; *top = a < b; break;
        case R_LE: a = *--top; *top = a <= b; break;
        case R_GT: a = *--top; *top = a > b; break;
        case R_GE: a = *--top; *top = a >= b; break;
        case R_AND: a = *--top; *top = a && b; break;
        case R_OR: a = *--top; *top = a || b; break;
        case R_NOT: *top = !a; break;
        case R_SELECT: top -= 2; *top = *top ? top[1] : b; break;  // condition, then, else
        case R_MAX: a = *--top; *top = a > b ? a : b; break;
        case R_MIN: a = *--top; *top = a < b ? a : b; break;
        case R_ABS: *top = a < 0 ? i32(0u - u32(a)) : a; break;
        case R_NEG: *top = i32(0u - u32(a)); break;
        case R_BCD: *top = bcd(a); break;
        case R_LO: *top = a & 15; break;
        case R_HI: *top = a >> 4; break;
        case R_D8: *top = a == 0x80 ? 0 : a >> 3; break;
        case R_X8: *top = a % 8 == 0 && a <= 72 ? a >> 3 : 0; break;
        case R_BL: *top = a == 10 ? 0 : a; break;
        case R_KO: *top = a == 0xc0 ? 100 : bcd(a); break;
        case R_POPCOUNT: *top = __builtin_popcount(u32(a)); break;
        default: return 0;
        }
    }
}

// The rules after a reset: the score counts from here.
inline void reset_rules(const Game& game, Play& play, const u8* ram) {
    const Rules& rules = game.rules;
    play.started = rules.started_at_reset;
    play.lives = rules.lives_at_reset;
    play.over = play.reward = 0;
    memcpy(play.ram_before, ram, 128);
    Values values = {ram, ram, 0, play.lives, play.started, 0, 0};
    play.score = run_rule(rules.code + rules.start[1], values);
}

// The rules after a frame.
inline void apply_rules(const Game& game, Play& play, const u8* ram) {
    const Rules& rules = game.rules;
    Values values = {ram, play.ram_before, play.score, play.lives, play.started, 0, 0};
    if (rules.start[0] >= 0) values.started = play.started = run_rule(rules.code + rules.start[0], values) != 0;
    i32 score = run_rule(rules.code + rules.start[1], values);
    values.change = i32(u32(score) - u32(play.score));
    values.over = play.over = run_rule(rules.code + rules.start[2], values) != 0;
    play.reward = run_rule(rules.code + rules.start[3], values);
    play.lives = run_rule(rules.code + rules.start[4], values);
    play.score = score;
    memcpy(play.ram_before, ram, 128);
}

}  // namespace a2600
