//! The BPF program that chooses the sockets of the agent for connections to other
//! machines: `sk_lookup` in the kernel's documentation of BPF.
//!
//! ```text
//!  address taken? ── no ──> the socket that the kernel would find
//!    │ yes
//!    ├─ TCP, any port ────> the agent's listening socket
//!    ├─ UDP, port 53 ─────> its socket for questions
//!    └─ UDP, else ────────> none: the program gets ECONNREFUSED
//! ```

use alloc::vec::Vec;

use rustix::fd::{AsRawFd, OwnedFd};

use super::prefix::{ALWAYS, AddressRange, NEVER, Prefix, ranges_v4};
use crate::sys::BpfInstruction;

/// The place of each socket in the map.
pub(super) const TCP_SOCKET: i32 = 0;
pub(super) const UDP_SOCKET: i32 = 1;

/// Returns the program, which takes these prefixes in addition to public addresses.
pub(super) fn lookup_program(map: &OwnedFd, extra: &[Prefix]) -> Vec<BpfInstruction> {
    let mut program = Program::default();
    program.add(MOV, Register(6), Register(1), 0, 0);
    program.load(Register(2), context::FAMILY);
    program.jump(JUMP_IF_NOT_EQUAL_32, Register(2), libc::AF_INET, Label::V6);
    program.load(Register(2), context::LOCAL_IP4);
    program.add_swap(Register(2));
    program.add_ranges(&ranges_v4(extra));

    program.place(Label::V6);
    for (register, offset) in (2..).zip(context::LOCAL_IP6) {
        program.load(Register(register), offset);
        program.add_swap(Register(register));
    }
    let is_v6 = |prefix: &&Prefix| !prefix.is_v4();
    // What is always taken has none of these.
    if extra.iter().any(|prefix| is_v6(&prefix)) {
        program.add_matches(&NEVER, is_v6, Label::Pass);
    }
    program.add_matches(&ALWAYS, is_v6, Label::Take);
    program.add_matches(extra, is_v6, Label::Take);

    program.place(Label::Pass);
    program.set(Register(0), SK_PASS);
    program.add(EXIT, Register(0), Register(0), 0, 0);

    program.place(Label::Take);
    program.load(Register(2), context::PROTOCOL);
    program.set(Register(3), TCP_SOCKET);
    program.jump(JUMP_IF_EQUAL, Register(2), libc::IPPROTO_TCP, Label::Choose);
    program.jump(
        JUMP_IF_NOT_EQUAL,
        Register(2),
        libc::IPPROTO_UDP,
        Label::Pass,
    );
    program.load(Register(3), context::LOCAL_PORT);
    program.jump(JUMP_IF_NOT_EQUAL, Register(3), DNS_PORT, Label::Drop);
    program.set(Register(3), UDP_SOCKET);

    program.place(Label::Choose);
    program.add(STORE, STACK, Register(3), -4, 0);
    program.load_map(Register(1), map.as_raw_fd());
    program.add(MOV, Register(2), STACK, 0, 0);
    program.add(ADD_CONSTANT, Register(2), Register(0), 0, -4);
    program.call(MAP_LOOKUP);
    program.jump(JUMP_IF_EQUAL, Register(0), 0, Label::Drop);
    program.add(MOV, Register(7), Register(0), 0, 0);
    program.add(MOV, Register(1), Register(6), 0, 0);
    program.add(MOV, Register(2), Register(7), 0, 0);
    program.set(Register(3), 0);
    program.call(SOCKET_ASSIGN);
    program.add(MOV, Register(8), Register(0), 0, 0);
    program.add(MOV, Register(1), Register(7), 0, 0);
    program.call(SOCKET_RELEASE);
    program.jump(JUMP_IF_EQUAL, Register(8), 0, Label::Pass);

    program.place(Label::Drop);
    program.set(Register(0), SK_DROP);
    program.add(EXIT, Register(0), Register(0), 0, 0);
    program.finish()
}

const DNS_PORT: i32 = 53;

/// The fields of `struct bpf_sk_lookup`.
mod context {
    pub(super) const FAMILY: i16 = 8;
    pub(super) const PROTOCOL: i16 = 12;
    pub(super) const LOCAL_IP4: i16 = 40;
    pub(super) const LOCAL_IP6: [i16; 4] = [44, 48, 52, 56];
    pub(super) const LOCAL_PORT: i16 = 60;
}

// The codes of instructions: linux/bpf_common.h and linux/bpf.h.
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const LOAD_64: u8 = 0x18;
const TO_BIG_ENDIAN: u8 = 0xdc;
const MOV: u8 = 0xbf;
const MOV_CONSTANT: u8 = 0xb7;
const MOV_32: u8 = 0xbc;
const SHIFT_RIGHT_32: u8 = 0x74;
const ADD_CONSTANT: u8 = 0x07;
const JUMP: u8 = 0x05;
const JUMP_IF_EQUAL: u8 = 0x15;
const JUMP_IF_NOT_EQUAL: u8 = 0x55;
const JUMP_IF_NOT_EQUAL_32: u8 = 0x56;
const JUMP_IF_LESS_32: u8 = 0xa6;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Marks the number of a map's descriptor.
const PSEUDO_MAP: Register = Register(1);

// Functions of the kernel.
const MAP_LOOKUP: i32 = 1;
const SOCKET_RELEASE: i32 = 86;
const SOCKET_ASSIGN: i32 = 124;

const SK_DROP: i32 = 0;
const SK_PASS: i32 = 1;

#[derive(Clone, Copy)]
struct Register(u8);

const STACK: Register = Register(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    V6,
    Pass,
    Take,
    Choose,
    Drop,
    /// What follows the match of a prefix.
    Next(usize),
}

/// A program with jumps to labels.
#[derive(Default)]
struct Program {
    instructions: Vec<BpfInstruction>,
    jumps: Vec<(usize, Label)>,
    places: Vec<(Label, usize)>,
    matches: usize,
}

impl Program {
    fn add(&mut self, code: u8, to: Register, from: Register, offset: i16, immediate: i32) {
        self.instructions.push(BpfInstruction {
            code,
            registers: to.0 | (from.0 << 4),
            offset,
            immediate,
        });
    }

    /// Loads a field of the context.
    fn load(&mut self, to: Register, offset: i16) {
        self.add(LOAD, to, Register(6), offset, 0);
    }

    fn load_map(&mut self, to: Register, map: i32) {
        self.add(LOAD_64, to, PSEUDO_MAP, 0, map);
        self.add(0, Register(0), Register(0), 0, 0);
    }

    fn set(&mut self, to: Register, value: i32) {
        self.add(MOV_CONSTANT, to, Register(0), 0, value);
    }

    /// Makes a number of an address, which is in network order.
    fn add_swap(&mut self, register: Register) {
        self.add(TO_BIG_ENDIAN, register, Register(0), 0, 32);
    }

    fn call(&mut self, function: i32) {
        self.add(CALL, Register(0), Register(0), 0, function);
    }

    fn jump(&mut self, code: u8, register: Register, value: i32, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.add(code, register, Register(0), 0, value);
    }

    fn place(&mut self, label: Label) {
        self.places.push((label, self.instructions.len()));
    }

    /// Decides about an address of IPv4, which is in register 2. One instruction for each
    /// range: the kernel's check of the program takes longer than all else here.
    fn add_ranges(&mut self, ranges: &[AddressRange]) {
        let label = |range: &AddressRange| match range.is_taken {
            true => Label::Take,
            false => Label::Pass,
        };
        let mut rest = ranges;
        while let [range, after @ ..] = rest {
            match after.first() {
                Some(next) => {
                    let first = next.first.cast_signed();
                    self.jump(JUMP_IF_LESS_32, Register(2), first, label(range));
                }
                None => self.jump(JUMP, Register(0), 0, label(range)),
            }
            rest = after;
        }
    }

    /// Jumps to a label if the address, in the registers from 2 on, has one of the prefixes
    /// of IPv6.
    fn add_matches(&mut self, prefixes: &[Prefix], is_chosen: fn(&&Prefix) -> bool, target: Label) {
        for prefix in prefixes.iter().filter(is_chosen) {
            let next = Label::Next(self.matches);
            self.matches = self.matches.saturating_add(1);
            let (words, length) = words(*prefix);
            let mut left = length;
            for (register, word) in (2..).zip(words) {
                let bits = left.min(32);
                left = left.saturating_sub(bits);
                self.compare(Register(register), word, bits, next);
            }
            self.jump(JUMP, Register(0), 0, target);
            self.place(next);
        }
    }

    /// Jumps to a label if the leading bits of a register are not those of the word.
    fn compare(&mut self, register: Register, word: u32, bits: u32, unequal: Label) {
        let shift = 32u32.saturating_sub(bits);
        let Some(value) = word.checked_shr(shift) else {
            return;
        };
        let mut compared = register;
        if shift > 0 {
            compared = Register(0);
            self.add(MOV_32, compared, register, 0, 0);
            self.add(
                SHIFT_RIGHT_32,
                compared,
                Register(0),
                0,
                shift.cast_signed(),
            );
        }
        self.jump(JUMP_IF_NOT_EQUAL_32, compared, value.cast_signed(), unequal);
    }

    /// Resolves the labels.
    fn finish(mut self) -> Vec<BpfInstruction> {
        for (index, label) in self.jumps {
            let place = self.places.iter().find(|(known, _)| *known == label);
            let distance = place.and_then(|(_, place)| {
                let place = i32::try_from(*place).ok()?;
                let next = i32::try_from(index).ok()?.checked_add(1)?;
                i16::try_from(place.checked_sub(next)?).ok()
            });
            if let (Some(instruction), Some(distance)) =
                (self.instructions.get_mut(index), distance)
            {
                instruction.offset = distance;
            }
        }
        self.instructions
    }
}

/// Returns the words of a prefix's address as the program has it, and the number of
/// bits that count.
fn words(prefix: Prefix) -> ([u32; 4], u32) {
    let (address, length) = prefix.address();
    let bits = address.to_bits();
    let word = |shift: u32| u32::try_from(bits.unbounded_shr(shift) & 0xffff_ffff).unwrap_or(0);
    ([96, 64, 32, 0].map(word), length)
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use super::*;

    /// What the kernel does with a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Choice {
        Usual,
        Socket(u64),
        Refused,
    }

    /// Runs a program as the kernel would. `has_sockets`: whether the map has them.
    fn run(
        program: &[BpfInstruction],
        protocol: i32,
        address: IpAddr,
        port: u32,
        has_sockets: bool,
    ) -> Choice {
        const CONTEXT: u64 = 0x1000;
        const SOCKETS: u64 = 0x2000;
        let mut context = [0u8; 68];
        let family = match address {
            IpAddr::V4(address) => {
                context[40..44].copy_from_slice(&address.octets());
                libc::AF_INET
            }
            IpAddr::V6(address) => {
                context[44..60].copy_from_slice(&address.octets());
                libc::AF_INET6
            }
        };
        context[8..12].copy_from_slice(&family.to_ne_bytes());
        context[12..16].copy_from_slice(&protocol.to_ne_bytes());
        context[60..64].copy_from_slice(&port.to_ne_bytes());
        let mut registers = [0u64; 11];
        registers[1] = CONTEXT;
        let (mut stack, mut chosen, mut held) = (0, None, 0);
        let mut next = 0usize;
        loop {
            let instruction = program[next];
            next += 1;
            let to = usize::from(instruction.registers & 15);
            let from = usize::from(instruction.registers >> 4);
            let immediate = instruction.immediate as u64;
            let low = registers[to] as u32;
            let jumps = match instruction.code {
                LOAD => {
                    assert_eq!(registers[from], CONTEXT);
                    let start = usize::try_from(instruction.offset).unwrap();
                    let word = context[start..start + 4].try_into().unwrap();
                    registers[to] = u32::from_ne_bytes(word).into();
                    false
                }
                STORE => {
                    assert_eq!((to, instruction.offset), (10, -4));
                    stack = registers[from];
                    false
                }
                LOAD_64 => {
                    next += 1;
                    registers[to] = immediate;
                    false
                }
                TO_BIG_ENDIAN => {
                    registers[to] = low.swap_bytes().into();
                    false
                }
                MOV => {
                    registers[to] = registers[from];
                    false
                }
                MOV_32 => {
                    registers[to] = (registers[from] as u32).into();
                    false
                }
                MOV_CONSTANT => {
                    registers[to] = immediate;
                    false
                }
                ADD_CONSTANT => {
                    registers[to] = registers[to].wrapping_add(immediate);
                    false
                }
                SHIFT_RIGHT_32 => {
                    assert!((1..32).contains(&immediate));
                    registers[to] = (low >> immediate).into();
                    false
                }
                JUMP => true,
                JUMP_IF_EQUAL => registers[to] == immediate,
                JUMP_IF_NOT_EQUAL => registers[to] != immediate,
                JUMP_IF_NOT_EQUAL_32 => low != immediate as u32,
                JUMP_IF_LESS_32 => low < immediate as u32,
                CALL => {
                    registers[0] = match instruction.immediate {
                        MAP_LOOKUP if has_sockets => {
                            held += 1;
                            SOCKETS + stack
                        }
                        MAP_LOOKUP => 0,
                        SOCKET_ASSIGN => {
                            assert_eq!(registers[1], CONTEXT);
                            chosen = Some(registers[2] - SOCKETS);
                            0
                        }
                        SOCKET_RELEASE => {
                            assert!(registers[1] >= SOCKETS);
                            held -= 1;
                            0
                        }
                        function => panic!("{function}"),
                    };
                    // The kernel does not keep them.
                    registers[1..6].fill(u64::MAX);
                    false
                }
                EXIT => {
                    assert_eq!(held, 0, "sockets must be released");
                    return match (registers[0], chosen) {
                        (0, _) => Choice::Refused,
                        (_, None) => Choice::Usual,
                        (_, Some(socket)) => Choice::Socket(socket),
                    };
                }
                code => panic!("{code:#x}"),
            };
            if jumps {
                next = next.wrapping_add_signed(instruction.offset.into());
            }
        }
    }

    fn program(extra: &[Prefix]) -> Vec<BpfInstruction> {
        let flags = rustix::fs::OFlags::RDONLY;
        let map = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty()).unwrap();
        lookup_program(&map, extra)
    }

    fn choice(extra: &[Prefix], protocol: i32, address: &str, port: u32) -> Choice {
        let address = address.parse().unwrap();
        run(&program(extra), protocol, address, port, true)
    }

    const TAKEN: [&str; 12] = [
        "8.8.8.8",
        "1.1.1.1",
        "192.0.1.255",
        "223.255.255.255",
        "198.18.0.53",
        "198.19.255.255",
        "169.254.169.254",
        "172.32.0.1",
        "2001:4860:4860::8888",
        "3fff:ffff::1",
        "64:ff9b::808:808",
        "fd76:6d63:656c:6c00::1",
    ];

    const LEFT: [&str; 18] = [
        "127.0.0.1",
        "127.1.2.3",
        "10.0.0.1",
        "172.17.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.253",
        "192.0.2.1",
        "0.0.0.0",
        "224.0.0.251",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fd00::1",
        "fd76:6d63:656c:6c01::1",
        "4000::1",
    ];

    #[test]
    fn connections_to_other_machines_are_taken_and_others_are_not() {
        for address in TAKEN {
            for port in [1, 53, 80, 65535] {
                let taken = choice(&[], libc::IPPROTO_TCP, address, port);
                assert_eq!(taken, Choice::Socket(0), "{address}");
            }
            let question = choice(&[], libc::IPPROTO_UDP, address, 53);
            assert_eq!(question, Choice::Socket(1), "{address}");
            let other = choice(&[], libc::IPPROTO_UDP, address, 443);
            assert_eq!(other, Choice::Refused, "{address}");
            let unknown = choice(&[], 132, address, 53);
            assert_eq!(unknown, Choice::Usual, "{address}");
        }
        for address in LEFT {
            for (protocol, port) in [(libc::IPPROTO_TCP, 80), (libc::IPPROTO_UDP, 53)] {
                assert_eq!(
                    choice(&[], protocol, address, port),
                    Choice::Usual,
                    "{address}"
                );
            }
        }
    }

    #[test]
    fn prefixes_of_a_request_are_taken_too() {
        let extra = [
            Prefix::v4(10, 0, 0, 0, 8),
            Prefix::v4(192, 168, 7, 9, 32),
            Prefix::v4(172, 16, 0, 0, 13),
            Prefix::v6([0xfd00, 0x1234, 0x8000, 0, 0, 0, 0, 0], 33),
            Prefix::v6([0xfd00, 0, 0, 0, 0, 0, 0, 7], 128),
        ];
        for (address, expected) in [
            ("10.255.0.1", Choice::Socket(0)),
            ("11.0.0.1", Choice::Socket(0)),
            ("192.168.7.9", Choice::Socket(0)),
            ("192.168.7.8", Choice::Usual),
            ("172.23.255.255", Choice::Socket(0)),
            ("172.24.0.0", Choice::Usual),
            ("127.0.0.1", Choice::Usual),
            ("fd00:1234:ffff::1", Choice::Socket(0)),
            ("fd00:1234:7fff::1", Choice::Usual),
            ("fd00::7", Choice::Socket(0)),
            ("fd00::8", Choice::Usual),
            ("::1", Choice::Usual),
        ] {
            let found = choice(&extra, libc::IPPROTO_TCP, address, 80);
            assert_eq!(found, expected, "{address}");
        }
    }

    #[test]
    fn not_even_the_shortest_prefix_takes_what_is_the_guests_own() {
        let extra = [Prefix::v4(0, 0, 0, 0, 0), Prefix::v6([0; 8], 0)];
        for address in ["10.0.0.1", "192.168.0.1", "fd00::1"] {
            let found = choice(&extra, libc::IPPROTO_TCP, address, 80);
            assert_eq!(found, Choice::Socket(0), "{address}");
        }
        for address in [
            "127.0.0.1",
            "192.0.2.1",
            "::1",
            "fe80::1",
            "ff02::1",
            "224.0.0.1",
        ] {
            let found = choice(&extra, libc::IPPROTO_TCP, address, 80);
            assert_eq!(found, Choice::Usual, "{address}");
        }
    }

    #[test]
    fn without_the_sockets_connections_are_refused() {
        let address = "8.8.8.8".parse().unwrap();
        let found = run(&program(&[]), libc::IPPROTO_TCP, address, 80, false);
        assert_eq!(found, Choice::Refused);
    }

    #[test]
    fn the_largest_program_has_jumps_that_reach() {
        let many: Vec<_> = (0..=255)
            .map(|number| Prefix::v6([0xfd00, number, 1, 2, 3, 4, 5, 6], 128))
            .collect();
        let program = program(&many);
        assert!(program.len() < 4096, "{}", program.len());
        let address = "fd00:ff:1:2:3:4:5:6".parse().unwrap();
        let found = run(&program, libc::IPPROTO_TCP, address, 80, true);
        assert_eq!(found, Choice::Socket(0));
    }
}
