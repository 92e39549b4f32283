// A pool of threads that steps environments; slots are sent and received in any order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "env.h"

namespace a2600 {

struct Command {
    i32 slot, action;  // action -1: reset
    i64 seed;
};

class Pool {
public:
    Shared shared;
    i32 count;
    std::vector<u8> memory;  // one block for each environment
    u8 *obs = nullptr, *final_obs = nullptr;
    Result* results = nullptr;

    Pool(const Game* game, const Options& options, i32 envs, i32 threads)
        : shared(game, options), count(envs), memory(shared.env_size() * size_t(envs) + 64), queue_(size_t(envs)),
          done_(size_t(envs)) {
        if (threads > 1) {
            for (i32 i = 0; i < threads; i++) workers_.emplace_back([this] { work(); });
        }
    }

    ~Pool() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        for (std::thread& worker : workers_) worker.join();
    }

    Env& env(i32 slot) {
        auto base = (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64;
        return *reinterpret_cast<Env*>(base + shared.env_size() * size_t(slot));
    }

    void send(const Command* commands, i32 n) {
        if (workers_.empty()) {
            for (i32 i = 0; i < n; i++) {
                run(commands[i]);
                done_[size_t((done_at_ + done_count_++) % count)] = commands[i].slot;
            }
            return;
        }
        {
            std::lock_guard<std::mutex> lock(mutex_);
            for (i32 i = 0; i < n; i++) queue_[size_t((queue_at_ + queue_count_++) % count)] = commands[i];
        }
        if (n == 1) wake_.notify_one();
        else wake_.notify_all();
    }

    // Slots that are done: at least `least` unless `seconds` pass, at most `most`.
    i32 receive(i32* slots, i32 least, i32 most, double seconds) {
        std::unique_lock<std::mutex> lock(mutex_);
        auto ready = [&] { return done_count_ >= least; };
        if (seconds < 0) finished_.wait(lock, ready);
        else finished_.wait_for(lock, std::chrono::duration<double>(seconds), ready);
        i32 n = done_count_ < most ? done_count_ : most;
        for (i32 i = 0; i < n; i++) slots[i] = done_[size_t((done_at_ + i) % count)];
        done_at_ = (done_at_ + n) % count;
        done_count_ -= n;
        return n;
    }

private:
    std::vector<std::thread> workers_;
    std::vector<Command> queue_;
    std::vector<i32> done_;
    std::mutex mutex_;
    std::condition_variable wake_, finished_;
    i32 queue_at_ = 0, queue_count_ = 0, done_at_ = 0, done_count_ = 0;
    bool stopping_ = false;

    void run(const Command& command) {
        size_t slot = size_t(command.slot), size = shared.frame_size() * size_t(shared.options.stack);
        u8 *out = obs + slot * size, *final_out = final_obs + slot * size;
        if (command.action < 0) reset_env(shared, env(command.slot), command.seed, out, results[slot]);
        else step_env(shared, env(command.slot), shared.actions[size_t(command.action)], out, final_out, results[slot]);
    }

    void work() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            wake_.wait(lock, [this] { return stopping_ || queue_count_; });
            if (stopping_) return;
            Command command = queue_[size_t(queue_at_)];
            queue_at_ = (queue_at_ + 1) % count;
            queue_count_--;
            lock.unlock();
            run(command);
            lock.lock();
            done_[size_t((done_at_ + done_count_++) % count)] = command.slot;
            finished_.notify_one();
        }
    }
};

}  // namespace a2600
