// Panics that unwind through frames with things to drop, are caught, and end threads.
use std::panic;

struct Noisy(&'static str);

impl Drop for Noisy {
    fn drop(&mut self) {
        println!("  drop {}", self.0);
    }
}

#[inline(never)]
fn inner(n: usize) -> usize {
    let _a = Noisy("inner");
    let list = vec![1, 2, 3];
    list[n]
}

#[inline(never)]
fn outer(n: usize) -> usize {
    let _b = Noisy("outer");
    let r = inner(n);
    if r == 3 {
        panic!("three");
    }
    r
}

fn main() {
    panic::set_hook(Box::new(|_| println!("  panic")));
    for n in 0..5 {
        match panic::catch_unwind(|| outer(n)) {
            Ok(r) => println!("{} gives {}", n, r),
            Err(_) => println!("{} panics", n),
        }
    }
    let ended = std::thread::spawn(|| outer(9)).join();
    println!("thread {}", if ended.is_err() { "panicked" } else { "ended" });
    std::process::exit(if ended.is_err() { 3 } else { 0 });
}
