//! The kernel's description of its own types (BTF): where in a structure a member lies.
//!
//! The format is that of the kernel's `Documentation/bpf/btf.rst`. Offsets differ from build to
//! build, so they are looked up where the programs run and never written down.

use std::ops::Range;

use crate::error::Error;

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// Aliases of aliases and nameless structures within each other; kernels need about five.
const DEPTH_MAX: usize = 16;
const KIND_POINTER: u32 = 2;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_TYPEDEF: u32 = 8;
/// `volatile`, `const`, `restrict`.
const KIND_QUALIFIERS: Range<u32> = 9..12;
const KIND_PROTOTYPE: u32 = 13;

/// The types of a kernel.
#[derive(Debug)]
pub(crate) struct Btf {
    bytes: Vec<u8>,
    /// Where each type begins; type 0 is `void` and has no bytes.
    starts: Vec<usize>,
    strings: usize,
}

/// One type's fixed part.
#[derive(Clone, Copy, Debug)]
struct Type {
    name: usize,
    kind: u32,
    /// Members, parameters or values.
    parts: usize,
    /// Offsets of members hold a width, too.
    has_widths: bool,
    /// The type it refers to, or its size.
    refers: u32,
    /// Where the variable part begins.
    body: usize,
}

/// Where a member lies and which type it has.
#[derive(Clone, Copy, Debug)]
struct Member {
    offset_bits: u32,
    type_id: u32,
}

impl Btf {
    /// The running kernel's.
    pub(crate) fn of_kernel() -> Result<Self, Error> {
        let bytes = std::fs::read("/sys/kernel/btf/vmlinux")
            .map_err(|error| Error::Types(format!("cannot be read: {error}")))?;
        Self::parse(bytes)
    }

    /// Out of the bytes of a file.
    pub(crate) fn parse(bytes: Vec<u8>) -> Result<Self, Error> {
        let broken = || Error::Types("are not in a format known here".to_owned());
        let mut btf = Self { bytes, starts: vec![0], strings: 0 };
        let magic = u32::from(MAGIC);
        if btf.word(0).ok_or_else(broken)? & 0xffff != magic {
            return Err(broken());
        }
        let field = |index: usize| btf.word(index * 4).map(|word| word as usize);
        let read = || Some((field(1)?, field(2)?, field(3)?, field(4)?));
        let (header, types, types_bytes, strings) = read().ok_or_else(broken)?;
        if header < HEADER_BYTES {
            return Err(broken());
        }
        btf.strings = header + strings;
        let (mut at, end) = (header + types, header + types + types_bytes);
        while at < end {
            btf.starts.push(at);
            let parsed = btf.read(at).ok_or_else(broken)?;
            at = parsed.body + body_bytes(&parsed).ok_or_else(broken)?;
        }
        Ok(btf)
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn read(&self, at: usize) -> Option<Type> {
        let (name, info, refers) = (self.word(at)?, self.word(at + 4)?, self.word(at + 8)?);
        Some(Type {
            name: name as usize,
            kind: info >> 24 & 0x1f,
            parts: (info & 0xffff) as usize,
            has_widths: info >> 31 == 1,
            refers,
            body: at + 12,
        })
    }

    fn named(&self, id: u32) -> Option<Type> {
        self.read(*self.starts.get(id as usize).filter(|_| id > 0)?)
    }

    /// The type behind names and qualifiers.
    fn resolved(&self, id: u32) -> Option<Type> {
        let mut found = self.named(id)?;
        for _ in 0..DEPTH_MAX {
            if found.kind != KIND_TYPEDEF && !KIND_QUALIFIERS.contains(&found.kind) {
                return Some(found);
            }
            found = self.named(found.refers)?;
        }
        None
    }

    fn text_is(&self, name: usize, expected: &str) -> bool {
        let start = self.strings + name;
        let found = self.bytes.get(start..start + expected.len() + 1);
        found.is_some_and(|found| found.split_last() == Some((&0, expected.as_bytes())))
    }

    /// All types of a kind and name.
    fn find(&self, kinds: &[u32], name: &str) -> Option<Type> {
        let types = self.starts.iter().skip(1).filter_map(|at| self.read(*at));
        let mut fitting = types.filter(|found| kinds.contains(&found.kind) && found.parts > 0);
        fitting.find(|found| self.text_is(found.name, name))
    }

    /// A member of a structure, also where it lies in one without a name.
    fn member(&self, of: &Type, name: &str, depth: usize) -> Option<Member> {
        for index in 0..of.parts {
            let at = of.body + index * 12;
            let (text, type_id) = (self.word(at)? as usize, self.word(at + 4)?);
            let offset = self.word(at + 8)?;
            let offset_bits = if of.has_widths { offset & 0x00ff_ffff } else { offset };
            if text != 0 && self.text_is(text, name) {
                return Some(Member { offset_bits, type_id });
            }
            let inner = self.resolved(type_id).filter(|inner| text == 0 && inner.is_composite());
            let inner = inner.filter(|_| depth < DEPTH_MAX);
            if let Some(found) = inner.and_then(|inner| self.member(&inner, name, depth + 1)) {
                return Some(Member { offset_bits: found.offset_bits + offset_bits, ..found });
            }
        }
        None
    }

    /// Offset of a member, bytes: `"inode.i_sb"`, or deeper: `"io_rw.kiocb.ki_pos"`.
    pub(crate) fn offset(&self, path: &str) -> Result<i32, Error> {
        let missing = || Error::Types(format!("have no {path}"));
        let mut names = path.split('.');
        let name = names.next().unwrap_or_default();
        let mut inside = self.find(&[KIND_STRUCT, KIND_UNION], name);
        let mut bits = 0;
        for name in names {
            let of = inside.ok_or_else(missing)?;
            let member = self.member(&of, name, 0).ok_or_else(missing)?;
            bits += member.offset_bits;
            inside = self.resolved(member.type_id);
        }
        i32::try_from(bits / 8).map_err(|_| missing())
    }

    /// The value of a name of an enumeration.
    pub(crate) fn value(&self, enumeration: &str, name: &str) -> Result<u32, Error> {
        let missing = || Error::Types(format!("have no {name} in {enumeration}"));
        let found = self.find(&[KIND_ENUM], enumeration).ok_or_else(missing)?;
        let mut at = (0..found.parts).map(|index| found.body + index * 8);
        let at = at.find(|at| self.word(*at).is_some_and(|text| self.text_is(text as usize, name)));
        at.and_then(|at| self.word(at + 4)).ok_or_else(missing)
    }

    /// How many arguments a tracepoint hands over.
    pub(crate) fn arguments_of(&self, tracepoint: &str) -> Option<usize> {
        let name = format!("btf_trace_{tracepoint}");
        let types = self.starts.iter().skip(1).filter_map(|at| self.read(*at));
        let mut typedefs = types.filter(|found| found.kind == KIND_TYPEDEF);
        let typedef = typedefs.find(|found| self.text_is(found.name, &name))?;
        let pointer = self.resolved(typedef.refers).filter(|found| found.kind == KIND_POINTER)?;
        let prototype = self.resolved(pointer.refers)?;
        // The first is the tracepoint's own.
        (prototype.kind == KIND_PROTOTYPE).then(|| prototype.parts.saturating_sub(1))
    }
}

impl Type {
    fn is_composite(&self) -> bool {
        [KIND_STRUCT, KIND_UNION].contains(&self.kind)
    }
}

/// Length of the variable part of a type, bytes; `None` for a kind that nobody knows.
fn body_bytes(of: &Type) -> Option<usize> {
    Some(match of.kind {
        // Integers, variables, tags of declarations.
        1 | 14 | 17 => 4,
        KIND_ARRAY => 12,
        // Structures, unions, sections, 64-bit enumerations.
        KIND_STRUCT | KIND_UNION | 15 | 19 => of.parts * 12,
        KIND_ENUM | KIND_PROTOTYPE => of.parts * 8,
        0 | 2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a small description of types.
    #[derive(Default)]
    struct Fixture {
        types: Vec<u8>,
        strings: Vec<u8>,
    }

    impl Fixture {
        fn text(&mut self, text: &str) -> u32 {
            if self.strings.is_empty() {
                self.strings.push(0);
            }
            if text.is_empty() {
                return 0;
            }
            let at = self.strings.len() as u32;
            self.strings.extend(text.bytes().chain([0]));
            at
        }

        fn of_type(&mut self, name: &str, kind: u32, refers: u32, parts: &[&[u32]]) {
            let name = self.text(name);
            let info = kind << 24 | parts.len() as u32;
            for word in [name, info, refers].iter().chain(parts.iter().copied().flatten()) {
                self.types.extend(word.to_le_bytes());
            }
        }

        fn bytes(&self) -> Vec<u8> {
            let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
            let header = [u32::from(MAGIC) | 1 << 16, 24, 0, types, types, strings];
            let header = header.iter().flat_map(|word| word.to_le_bytes());
            header.chain(self.types.iter().copied()).chain(self.strings.iter().copied()).collect()
        }
    }

    /// `struct inner { x @0; y @64 }`, `struct outer { a @0; (nameless: inner @64); b: inner @192 }`,
    /// `enum flags { HEAD = 6 }`.
    fn fixture() -> Btf {
        let mut fixture = Fixture::default();
        let [x, y, a, b] = ["x", "y", "a", "b"].map(|name| fixture.text(name));
        let head = fixture.text("HEAD");
        fixture.of_type("long", 7, 0, &[]);
        fixture.of_type("inner", KIND_STRUCT, 16, &[&[x, 1, 0], &[y, 1, 64]]);
        fixture.of_type("alias", KIND_TYPEDEF, 2, &[]);
        let outer: [&[u32]; 3] = [&[a, 1, 0], &[0, 2, 64], &[b, 3, 192]];
        fixture.of_type("outer", KIND_STRUCT, 40, &outer);
        fixture.of_type("flags", KIND_ENUM, 4, &[&[head, 6]]);
        fixture.of_type("", KIND_PROTOTYPE, 0, &[&[0, 1], &[0, 1], &[0, 1]]);
        fixture.of_type("", KIND_POINTER, 6, &[]);
        fixture.of_type("btf_trace_happened", KIND_TYPEDEF, 7, &[]);
        Btf::parse(fixture.bytes()).unwrap()
    }

    #[test]
    fn members_are_found_at_their_offsets() {
        let btf = fixture();
        for (path, offset) in
            [("inner.y", 8), ("outer.a", 0), ("outer.y", 16), ("outer.b", 24), ("outer.b.y", 32)]
        {
            assert_eq!(btf.offset(path).unwrap(), offset, "{path}");
        }
        assert_eq!(btf.value("flags", "HEAD").unwrap(), 6);
        assert_eq!(btf.arguments_of("happened"), Some(2));
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = fixture().offset("outer.c").unwrap_err().to_string();
        assert!(error.contains("have no outer.c"), "{error}");
        assert!(fixture().offset("other.a").is_err());
        assert!(fixture().value("flags", "TAIL").is_err());
        assert_eq!(fixture().arguments_of("never"), None);
    }

    #[test]
    fn no_prefix_and_no_flipped_byte_is_fatal() {
        let whole = {
            let btf = fixture();
            btf.bytes
        };
        for length in 0..whole.len() {
            if let Ok(btf) = Btf::parse(whole[..length].to_vec()) {
                btf.offset("outer.b.y").ok();
            }
        }
        for at in 4..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x15;
            if let Ok(btf) = Btf::parse(bytes) {
                btf.offset("outer.b.y").ok();
                btf.arguments_of("happened");
            }
        }
    }

    #[test]
    fn the_running_kernel_describes_its_tasks() {
        let Ok(btf) = Btf::of_kernel() else {
            ioscape_test_support::skipped("no readable /sys/kernel/btf/vmlinux");
            return;
        };
        assert!(btf.offset("task_struct.tgid").unwrap() > btf.offset("task_struct.pid").unwrap());
        assert_eq!(btf.arguments_of("sys_enter"), Some(2));
    }
}
