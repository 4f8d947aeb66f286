//! The filter that stops a program at calls that concern files: a program of the classic BPF.

use std::mem::offset_of;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_TRACE,
    seccomp_data, sock_filter,
};

use crate::call::{Calls, MAP};

/// Names the architecture, so that numbers of another are not taken for these.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

fn instruction(code: u32, number: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k: number }
}

fn load(offset: usize) -> sock_filter {
    instruction(BPF_LD | BPF_W | BPF_ABS, offset as u32)
}

fn give(answer: u32) -> sock_filter {
    instruction(BPF_RET | BPF_K, answer)
}

/// Goes so many instructions on if equal, else as many as the other number says.
fn jump(number: u32, equal: usize, otherwise: usize) -> sock_filter {
    let (jt, jf) = (equal as u8, otherwise as u8);
    sock_filter { jt, jf, ..instruction(BPF_JMP | BPF_JEQ | BPF_K, number) }
}

/// Stops at all of these calls; at `mmap` only where it maps a file.
pub(super) fn of_calls(calls: &Calls) -> Vec<sock_filter> {
    // Calls are grouped, for a jump is at most 255 instructions long.
    const GROUP: usize = 64;
    let numbers: Vec<u32> = calls
        .all()
        .map(|(number, _)| number as u32)
        .filter(|number| *number != MAP as u32)
        .collect();
    let mut code = vec![
        load(offset_of!(seccomp_data, arch)),
        jump(ARCHITECTURE, 1, 0),
        give(SECCOMP_RET_ALLOW),
        load(offset_of!(seccomp_data, nr)),
        jump(MAP as u32, 0, 4),
        // The low half of the descriptor; both architectures keep it first.
        load(offset_of!(seccomp_data, args) + 4 * 8),
        jump(u32::MAX, 0, 1),
        give(SECCOMP_RET_ALLOW),
        give(SECCOMP_RET_TRACE),
    ];
    for group in numbers.chunks(GROUP) {
        for (index, number) in group.iter().enumerate() {
            let after = group.len() - index - 1;
            // Without a match the last comparison goes past the stop, into the next group.
            code.push(jump(*number, after, usize::from(after == 0)));
        }
        code.push(give(SECCOMP_RET_TRACE));
    }
    code.push(give(SECCOMP_RET_ALLOW));
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter as the kernel does.
    fn answer(code: &[sock_filter], architecture: u32, number: u32, descriptor: u32) -> u32 {
        let (mut at, mut held) = (0, 0);
        loop {
            let instruction = &code[at];
            at += 1;
            match u32::from(instruction.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    held = match instruction.k as usize {
                        offset if offset == offset_of!(seccomp_data, arch) => architecture,
                        offset if offset == offset_of!(seccomp_data, nr) => number,
                        _ => descriptor,
                    };
                }
                code if code == BPF_RET | BPF_K => return instruction.k,
                _ => {
                    let is = held == instruction.k;
                    at += usize::from(if is { instruction.jt } else { instruction.jf });
                }
            }
        }
    }

    #[test]
    fn calls_that_concern_files_stop_and_others_do_not() {
        let calls = Calls::native();
        let code = of_calls(&calls);
        for number in 0..600 {
            let concerns = calls.get(number).is_some();
            let expected = if concerns { SECCOMP_RET_TRACE } else { SECCOMP_RET_ALLOW };
            assert_eq!(answer(&code, ARCHITECTURE, number as u32, 3), expected, "{number}");
            assert_eq!(answer(&code, 0, number as u32, 3), SECCOMP_RET_ALLOW);
        }
        let anonymous = answer(&code, ARCHITECTURE, MAP as u32, u32::MAX);
        assert_eq!(anonymous, SECCOMP_RET_ALLOW);
    }
}
