//! What a block device carries, told by its magic numbers: filesystems, parts of arrays and
//! volume groups, encryption, swap, partition tables, databases. The places are those that the
//! formats' own documentation and kernel headers give.
//!
//! Nothing found does not mean that nothing is there: plain encryption looks like noise.

use std::io;

/// Something recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it is, with an article: `an ext2, ext3 or ext4 filesystem`.
    pub what: &'static str,
    /// Where its mark was found, bytes from the start.
    pub at: u64,
}

/// Where a mark is.
#[derive(Clone, Copy)]
enum MarkOffset {
    /// Bytes from the start.
    Start(u64),
    /// Bytes before the end.
    End(u64),
    /// Bytes before the end, then down to a multiple, then so many up.
    EndAligned(u64, u64, u64),
    /// Every so many bytes of a stretch that begins at a place of its own.
    Every(&'static [Stretch], u64),
}

/// From and to, bytes; from the start, or before the end where `from_end`.
#[derive(Clone, Copy)]
struct Stretch {
    from: u64,
    length: u64,
    from_end: bool,
}

struct Signature {
    what: &'static str,
    places: &'static [MarkOffset],
    magic: &'static [u8],
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

const ZFS_LABELS: &[Stretch] = &[
    Stretch { from: 128 * KIB, length: 128 * KIB, from_end: false },
    Stretch { from: 384 * KIB, length: 128 * KIB, from_end: false },
    Stretch { from: 384 * KIB, length: 128 * KIB, from_end: true },
    Stretch { from: 128 * KIB, length: 128 * KIB, from_end: true },
];

const fn on(what: &'static str, places: &'static [MarkOffset], magic: &'static [u8]) -> Signature {
    Signature { what, places, magic }
}

use MarkOffset::{End, EndAligned, Every, Start};

/// What the shorter marks are looked for in.
const HEAD_BYTES: usize = 4096;

/// Marks of four bytes and more: found by chance in no device of this world. The shorter ones are
/// [`weak`].
const SIGNATURES: &[Signature] = &[
    on("a partition table (GPT)", &[Start(512), Start(4096), End(512), End(4096)], b"EFI PART"),
    on("a partition table (Apple)", &[Start(512)], b"PM\0\0"),
    on("a partition table (BSD)", &[Start(512), Start(64)], b"\x57\x45\x56\x82"),
    on("a partition table (SGI)", &[Start(0)], b"\x0b\xe5\xa9\x41"),
    on("an XFS filesystem", &[Start(0)], b"XFSB"),
    on(
        "a Btrfs filesystem",
        &[Start(64 * KIB + 0x40), Start(64 * MIB + 0x40), Start(256 * KIB * MIB + 0x40)],
        b"_BHRfS_M",
    ),
    on("a ZFS member", &[Every(ZFS_LABELS, KIB)], b"\x0c\xb1\xba\0\0\0\0\0"),
    on("a ZFS member", &[Every(ZFS_LABELS, KIB)], b"\0\0\0\0\0\xba\xb1\x0c"),
    on(
        "a bcachefs filesystem",
        &[Start(4096 + 24)],
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
    ),
    on(
        "a bcache device",
        &[Start(4096 + 24)],
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
    ),
    on("an F2FS filesystem", &[Start(KIB), Start(5 * KIB)], b"\x10\x20\xf5\xf2"),
    on("an EROFS filesystem", &[Start(KIB)], b"\xe2\xe1\xf5\xe0"),
    on("a FAT filesystem", &[Start(54)], b"FAT12   "),
    on("a FAT filesystem", &[Start(54)], b"FAT16   "),
    on("a FAT filesystem", &[Start(54)], b"FAT     "),
    on("a FAT filesystem", &[Start(82)], b"FAT32   "),
    on("an NTFS filesystem", &[Start(3)], b"NTFS    "),
    on("an exFAT filesystem", &[Start(3)], b"EXFAT   "),
    on("a ReFS filesystem", &[Start(3)], b"ReFS\0\0\0\0"),
    on("a BitLocker volume", &[Start(3)], b"-FVE-FS-"),
    on("an ISO 9660 filesystem", &[Start(32 * KIB + 1)], b"CD001"),
    on("a UDF filesystem", &[Start(32 * KIB + 1), Start(34 * KIB + 1)], b"BEA01"),
    on("a SquashFS filesystem", &[Start(0)], b"hsqs"),
    on("a SquashFS filesystem", &[Start(0)], b"sqsh"),
    on("a cramfs filesystem", &[Start(0), Start(512)], b"\x45\x3d\xcd\x28"),
    on("a romfs filesystem", &[Start(0)], b"-rom1fs-"),
    on("a zonefs filesystem", &[Start(0)], b"SFOZ"),
    on("a UBI volume", &[Start(0)], b"UBI#"),
    on("a UBIFS filesystem", &[Start(0)], b"\x31\x18\x10\x06"),
    on("a ReiserFS filesystem", &[Start(64 * KIB + 52), Start(8 * KIB + 52)], b"ReIsEr"),
    on("a Reiser4 filesystem", &[Start(64 * KIB)], b"ReIsEr4"),
    on("a JFS filesystem", &[Start(32 * KIB)], b"JFS1"),
    on("a NILFS2 filesystem", &[Start(KIB)], b"\x02\0\0\0\0\0\x34\x34"),
    on(
        "an OCFS2 filesystem",
        &[Start(KIB), Start(2 * KIB), Start(4 * KIB), Start(8 * KIB)],
        b"OCFSV2",
    ),
    on("a GFS2 filesystem", &[Start(64 * KIB)], b"\x01\x16\x19\x70"),
    on("a VMFS volume", &[Start(MIB)], b"\x0d\xd0\x01\xc0"),
    on("a VMFS filesystem", &[Start(2 * MIB)], b"\x5e\xf1\xab\x2f"),
    on("a VxFS filesystem", &[Start(KIB)], b"\xf5\xfc\x01\xa5"),
    on("a UFS filesystem", &[Start(8 * KIB + 1372), Start(64 * KIB + 1372)], b"\x54\x19\x01\0"),
    on("a UFS filesystem", &[Start(8 * KIB + 1372), Start(64 * KIB + 1372)], b"\x19\x01\x54\x19"),
    on("an APFS container", &[Start(32)], b"NXSB"),
    on("an HFS+ filesystem", &[Start(KIB)], b"H+\0\x04"),
    on("an HFS+ filesystem", &[Start(KIB)], b"HX\0\x05"),
    on(
        "swap space",
        &[Start(4086), Start(8182), Start(16_374), Start(32_758), Start(65_526)],
        b"SWAPSPACE2",
    ),
    on(
        "swap space",
        &[Start(4086), Start(8182), Start(16_374), Start(32_758), Start(65_526)],
        b"SWAP-SPACE",
    ),
    on("a suspended system", &[Start(4086), Start(8182), Start(65_526)], b"S1SUSPEND"),
    on("a suspended system", &[Start(4086), Start(8182), Start(65_526)], b"LINHIB0001"),
    on("an encrypted volume (LUKS)", &[Start(0)], b"LUKS\xba\xbe"),
    on(
        "an encrypted volume (LUKS)",
        &[Start(16 * KIB), Start(32 * KIB), Start(64 * KIB), Start(128 * KIB), Start(256 * KIB)],
        b"SKUL\xba\xbe",
    ),
    on("a physical volume of LVM", &[Start(0), Start(512), Start(KIB), Start(1536)], b"LABELONE"),
    on("a physical volume of LVM", &[Start(0)], b"HM\x01\0"),
    on("a snapshot store of LVM", &[Start(0)], b"SnAp"),
    on("a dm-integrity volume", &[Start(0)], b"integrt\0"),
    on("a dm-verity volume", &[Start(0)], b"verity\0\0"),
    on("a VDO volume", &[Start(0)], b"dmvdo001"),
    on("a Stratis pool member", &[Start(516), Start(4612)], b"!Stra0tis\x86\xff\x02^Arh"),
    // The four layouts of md: at the start, 4 KiB in, near the end, in the last 64 KiB.
    on(
        "a RAID member (md)",
        &[
            Start(0),
            Start(4096),
            EndAligned(8 * KIB, 4 * KIB, 0),
            EndAligned(64 * KIB, 64 * KIB, 0),
        ],
        b"\xfc\x4e\x2b\xa9",
    ),
    on("a RAID member (md)", &[EndAligned(64 * KIB, 64 * KIB, 0)], b"\xa9\x2b\x4e\xfc"),
    on("a RAID member (DDF)", &[End(512)], b"\xde\x11\xde\x11"),
    on("a RAID member (DDF)", &[End(512)], b"\x11\xde\x11\xde"),
    on("a RAID member (Intel)", &[End(KIB)], b"Intel Raid ISM Cfg Sig. "),
    on("a DRBD device", &[EndAligned(4 * KIB, 4 * KIB, 60)], b"\x83\x74\x02\x6b"),
    on("a DRBD device", &[EndAligned(4 * KIB, 4 * KIB, 60)], b"\x83\x74\x02\x6c"),
    on("a DRBD device", &[EndAligned(4 * KIB, 4 * KIB, 60)], b"\x83\x74\x02\x6d"),
    on("a Ceph object store", &[Start(0)], b"bluestore block device"),
    on("an Oracle ASM disk", &[Start(32)], b"ORCLDISK"),
];

/// Everything recognised on a device of `length` bytes, each thing once, in the order of the
/// table. `read` fills the buffer from an offset.
///
/// # Errors
/// When `read` fails: a device that cannot be read is not known to be empty.
pub fn find(
    length: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Vec<Found>> {
    let mut found: Vec<Found> = Vec::new();
    let mut add = |what, at| {
        if found.iter().all(|other| other.what != what) {
            found.push(Found { what, at });
        }
    };
    let mut buffer = vec![0; 128 * KIB as usize];
    for signature in SIGNATURES {
        for place in signature.places {
            if let Some(at) = look(signature.magic, *place, length, &mut buffer, &mut read)? {
                add(signature.what, at);
            }
        }
    }
    if length >= HEAD_BYTES as u64 {
        let head = &mut buffer[..HEAD_BYTES];
        read(0, head)?;
        for (what, at) in weak(head) {
            add(what, at);
        }
    }
    Ok(found)
}

/// Where `magic` stands at `place`, if it does.
fn look(
    magic: &[u8],
    place: MarkOffset,
    length: u64,
    buffer: &mut [u8],
    read: &mut impl FnMut(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Option<u64>> {
    let at = match place {
        Start(at) => Some(at),
        End(back) => length.checked_sub(back),
        EndAligned(back, multiple, up) => {
            length.checked_sub(back).map(|at| at / multiple * multiple + up)
        }
        Every(stretches, step) => {
            for stretch in stretches {
                // Labels at the end are aligned to their own size.
                let end = length / (256 * KIB) * (256 * KIB);
                let from = if stretch.from_end {
                    end.checked_sub(stretch.from)
                } else {
                    Some(stretch.from)
                };
                let Some(from) = from.filter(|from| from + stretch.length <= length) else {
                    continue;
                };
                let bytes = &mut buffer[..stretch.length as usize];
                read(from, bytes)?;
                let hit = bytes.chunks(step as usize).position(|chunk| chunk.starts_with(magic));
                if let Some(index) = hit {
                    return Ok(Some(from + index as u64 * step));
                }
            }
            return Ok(None);
        }
    };
    let Some(at) = at.filter(|at| at.saturating_add(magic.len() as u64) <= length) else {
        return Ok(None);
    };
    let bytes = &mut buffer[..magic.len()];
    read(at, bytes)?;
    Ok((bytes == magic).then_some(at))
}

/// Marks of two bytes, which noise carries now and then: what stands around them has to make
/// sense too. `head` is the first 4 KiB.
fn weak(head: &[u8]) -> Vec<(&'static str, u64)> {
    let mut found = Vec::new();
    if is_boot_sector(head) {
        found.push(("a boot sector or a partition table (MBR)", 510));
    }
    if is_ext(head) {
        found.push(("an ext2, ext3 or ext4 filesystem", 1080));
    }
    if is_minix(head) {
        found.push(("a Minix filesystem", 1040));
    }
    found
}

/// 55 AA with code in front of it, or with at least one partition and none that cannot be.
fn is_boot_sector(head: &[u8]) -> bool {
    if head[510..512] != [0x55, 0xaa] {
        return false;
    }
    let mut entries = head[446..510].chunks(16);
    let is_plausible = entries.clone().all(|entry| matches!(entry[0], 0x00 | 0x80));
    let is_used = entries.any(|entry| entry[4] != 0 && entry[12..16] != [0; 4]);
    let is_code = matches!(head[0], 0xeb | 0xe9 | 0xfa | 0x33 | 0x31);
    is_plausible && is_used || is_code
}

/// Magic EF53 in a superblock whose block size and revision exist.
fn is_ext(head: &[u8]) -> bool {
    const SUPERBLOCK: usize = 1024;
    let number =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (inodes, blocks) = (number(SUPERBLOCK), number(SUPERBLOCK + 4));
    let (block_size_log, revision) = (number(SUPERBLOCK + 24), number(SUPERBLOCK + 76));
    head[SUPERBLOCK + 56..SUPERBLOCK + 58] == [0x53, 0xef]
        && inodes > 0
        && blocks > 0
        && block_size_log <= 6
        && revision <= 1
}

/// One of four magics in a superblock of versions 1 and 2 with zones of one to 64 blocks.
fn is_minix(head: &[u8]) -> bool {
    const SUPERBLOCK: usize = 1024;
    let word = |at: usize| u16::from_le_bytes([head[SUPERBLOCK + at], head[SUPERBLOCK + at + 1]]);
    let old = matches!(word(16), 0x137f | 0x138f | 0x2468 | 0x2478);
    // Version 3 has its magic further on, behind the size of its blocks.
    let new = word(24) == 0x4d5a && matches!(word(28), 1024 | 2048 | 4096);
    (old && word(0) > 0 && word(10) <= 6 && word(18) <= 3) || new
}

#[cfg(test)]
mod tests;
