//! Arguments of a call as tracers write them: `3</tmp/a>, "x", O_RDWR|O_CREAT, 0644`.

use std::borrow::Cow;

use super::super::scan;

/// No system call has more.
const MAX: usize = 7;
/// The current directory in place of a descriptor.
pub(crate) const CURRENT_DIRECTORY: i32 = -100;

/// In which digits plain numbers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Base {
    #[default]
    AsMarked,
    /// Hexadecimal without a mark, as of perf's raw system calls.
    Hexadecimal,
}

/// A call's arguments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arguments<'a> {
    items: [&'a [u8]; MAX],
    count: usize,
    base: Base,
}

/// A descriptor and, where the tracer knew it, its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor<'a> {
    pub(crate) number: i32,
    pub(crate) path: Option<&'a [u8]>,
    /// The file has no name any more.
    pub(crate) is_deleted: bool,
}

impl<'a> Arguments<'a> {
    pub(crate) fn in_base(base: Base) -> Self {
        Self { base, ..Self::default() }
    }

    /// Adds an argument; more than any call has are left out.
    pub(crate) fn push(&mut self, item: &'a [u8]) {
        if self.count < MAX {
            self.items[self.count] = item.trim_ascii();
            self.count += 1;
        }
    }

    /// Takes what is between the brackets of strace, and gives what follows the closing one.
    pub(crate) fn parse(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut arguments = Self::default();
        let (mut from, mut at, mut depth) = (0, 0, 0_usize);
        while let Some(&byte) = text.get(at) {
            match byte {
                b'"' => at = after_quotes(text, at)? - 1,
                b'<' if depth == 0 && is_descriptor(&text[from..at]) => {
                    at = after_path(text, at)? - 1;
                }
                b'/' if text[at..].starts_with(b"/*") => {
                    at += memchr::memmem::find(&text[at..], b"*/")? + 1;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' if depth == 0 => {
                    if !text[from..at].trim_ascii().is_empty() {
                        arguments.push(&text[from..at]);
                    }
                    return Some((arguments, &text[at + 1..]));
                }
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => {
                    arguments.push(&text[from..at]);
                    from = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// As it was written.
    pub(crate) fn raw(&self, index: usize) -> &'a [u8] {
        self.items.get(index).copied().unwrap_or_default()
    }

    pub(crate) fn number(&self, index: usize) -> Option<i64> {
        let text = self.raw(index);
        match self.base {
            Base::AsMarked => scan::number(text),
            Base::Hexadecimal => {
                let text = text.strip_prefix(b"0x").unwrap_or(text);
                scan::hexadecimal(text).map(u64::cast_signed)
            }
        }
    }

    pub(crate) fn unsigned(&self, index: usize) -> Option<u64> {
        self.number(index).and_then(|number| u64::try_from(number).ok())
    }

    /// Whether a word is among flags such as `O_RDWR|O_CREAT`, or its bits are set in a number.
    pub(crate) fn has_flag(&self, index: usize, word: &str, bits: i64) -> bool {
        match self.number(index) {
            Some(number) => number & bits == bits,
            None => memchr::memmem::find(self.raw(index), word.as_bytes()).is_some_and(|at| {
                let end = self.raw(index).get(at + word.len());
                !end.is_some_and(|byte| byte.is_ascii_uppercase() || *byte == b'_')
            }),
        }
    }

    pub(crate) fn descriptor(&self, index: usize) -> Option<Descriptor<'a>> {
        match self.number(index) {
            Some(number) => {
                // The kernel looks at 32 bits only.
                Some(Descriptor { number: number as i32, path: None, is_deleted: false })
            }
            None => descriptor(self.raw(index)),
        }
    }

    /// A string without its quotes; `None` where the tracer wrote an address.
    pub(crate) fn text(&self, index: usize) -> Option<Cow<'a, [u8]>> {
        let text = self.raw(index).strip_prefix(b"\"")?;
        let text = text.strip_suffix(b"...").unwrap_or(text);
        Some(unescaped(text.strip_suffix(b"\"").unwrap_or(text)))
    }
}

/// `3</tmp/a>`, `AT_FDCWD</root>`, `4</tmp/b>(deleted)`.
pub(crate) fn descriptor(text: &[u8]) -> Option<Descriptor<'_>> {
    let cut = memchr::memchr(b'<', text).unwrap_or(text.len());
    let number = match &text[..cut] {
        b"AT_FDCWD" => CURRENT_DIRECTORY,
        digits => i32::try_from(scan::number(digits)?).ok()?,
    };
    let Some(rest) = text.get(cut + 1..) else {
        return Some(Descriptor { number, path: None, is_deleted: false });
    };
    let (rest, is_marked) = match rest.strip_suffix(b"(deleted)") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let path = rest.strip_suffix(b">")?;
    Some(match path.strip_suffix(b" (deleted)") {
        Some(path) => Descriptor { number, path: Some(path), is_deleted: true },
        None => Descriptor { number, path: Some(path), is_deleted: is_marked },
    })
}

/// Whether what stands before `<` is a descriptor, and no comparison or shift.
fn is_descriptor(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text == b"AT_FDCWD" || !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// Just after the quotes that begin at `at`.
fn after_quotes(text: &[u8], at: usize) -> Option<usize> {
    let mut from = at + 1;
    loop {
        let end = from + memchr::memchr(b'"', &text[from..])?;
        let escapes = text[from..end].iter().rev().take_while(|&&byte| byte == b'\\').count();
        if escapes % 2 == 0 {
            return Some(end + 1);
        }
        from = end + 1;
    }
}

/// Just after the path in angle brackets that begins at `at`. Old versions of strace write `>`
/// within the path as it is: the end is where the argument ends.
fn after_path(text: &[u8], at: usize) -> Option<usize> {
    memchr::memchr_iter(b'>', &text[at..]).map(|found| at + found + 1).find(|&end| {
        let rest = text[end..].strip_prefix(b"(deleted)").unwrap_or(&text[end..]);
        matches!(rest, [] | [b',' | b')', ..])
    })
}

/// Without the backslashes of a C string.
pub(crate) fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        if *byte != b'\\' {
            plain.push(*byte);
            rest = after;
            continue;
        }
        let octal = after.iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
        if octal > 0 {
            let value =
                after[..octal].iter().fold(0_u32, |value, byte| value * 8 + u32::from(byte - b'0'));
            plain.push(value as u8);
            rest = &after[octal..];
        } else {
            match after {
                [b'n', ..] => plain.push(b'\n'),
                [b't', ..] => plain.push(b'\t'),
                [b'r', ..] => plain.push(b'\r'),
                [b'v', ..] => plain.push(0x0b),
                [b'f', ..] => plain.push(0x0c),
                [other, ..] => plain.push(*other),
                [] => {}
            }
            rest = after.get(1..).unwrap_or_default();
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<String>, String) {
        let (arguments, rest) = Arguments::parse(text.as_bytes()).unwrap();
        let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let items = arguments.items[..arguments.count].iter().map(|item| string(item)).collect();
        (items, string(rest))
    }

    #[test]
    fn arguments_end_where_the_call_does() {
        let check = |text, items: &[&str], rest| {
            assert_eq!(
                split(text),
                (items.iter().map(ToString::to_string).collect(), String::from(rest))
            );
        };
        check("3</a>, \"x, y)\", 4) = 4", &["3</a>", "\"x, y)\"", "4"], " = 4");
        check("3</a>b, (c)>, 1) = 1", &["3</a>b, (c)>", "1"], " = 1");
        check("\"a\\\"b\\\\\", O_RDONLY) = 3", &["\"a\\\"b\\\\\"", "O_RDONLY"], " = 3");
        check(
            "3, {st_mode=S_IFREG|0644, st_size=5}) = 0",
            &["3", "{st_mode=S_IFREG|0644, st_size=5}"],
            " = 0",
        );
        check(
            "3, [{iov_base=\"a)\", iov_len=2}], 1) = 2",
            &["3", "[{iov_base=\"a)\", iov_len=2}]", "1"],
            " = 2",
        );
        check(
            "3</x>, 0x55 /* 12 entries, all */, 32768) = 384",
            &["3</x>", "0x55 /* 12 entries, all */", "32768"],
            " = 384",
        );
        check(") = 7", &[], " = 7");
        assert!(Arguments::parse(b"3, \"unfinished").is_none());
        assert!(Arguments::parse(b"3</never").is_none());
    }

    #[test]
    fn a_descriptor_has_a_number_and_perhaps_a_file() {
        let check = |text: &str, number, path: Option<&str>, is_deleted| {
            let path = path.map(str::as_bytes);
            assert_eq!(descriptor(text.as_bytes()), Some(Descriptor { number, path, is_deleted }));
        };
        check("3", 3, None, false);
        check("3</a b>", 3, Some("/a b"), false);
        check("AT_FDCWD</root>", -100, Some("/root"), false);
        check("3</a>(deleted)", 3, Some("/a"), true);
        check("3</a (deleted)>", 3, Some("/a"), true);
        check("5<pipe:[77]>", 5, Some("pipe:[77]"), false);
        assert_eq!(descriptor(b"x"), None);
        assert_eq!(descriptor(b"3</a"), None);
    }

    #[test]
    fn flags_are_words_or_bits() {
        let flags = |text: &'static [u8]| {
            let mut arguments = Arguments::default();
            arguments.push(text);
            (arguments.has_flag(0, "O_SYNC", 0o4_010_000), arguments.has_flag(0, "O_CREAT", 0o100))
        };
        assert_eq!(flags(b"O_WRONLY|O_CREAT|O_SYNC"), (true, true));
        assert_eq!(flags(b"O_RDONLY"), (false, false));
        assert_eq!(flags(b"0x40"), (false, true));
    }

    #[test]
    fn strings_lose_their_escapes() {
        let mut arguments = Arguments::default();
        arguments.push(br#""a\"\\\n\101\0x""#);
        assert_eq!(arguments.text(0).unwrap(), &b"a\"\\\nA\0x"[..]);
        arguments.push(br#""cut"..."#);
        assert_eq!(arguments.text(1).unwrap(), &b"cut"[..]);
        assert_eq!(arguments.text(2), None);
    }
}
