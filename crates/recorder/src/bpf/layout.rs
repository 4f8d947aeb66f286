//! Where the running kernel keeps what the programs read: offsets in bytes, by BTF.

use super::btf::Btf;
use crate::error::Error;

/// Offsets that every recording needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) task: Task,
    pub(crate) file: File,
    pub(crate) inode: Inode,
    /// `files_struct.fdt`, then `fdtable.fd`.
    pub(crate) table: (i32, i32),
    /// `linux_binprm.file`.
    pub(crate) program_file: i32,
    /// Page cache; `None` where this kernel keeps it otherwise.
    pub(crate) pages: Option<Pages>,
    /// `io_uring`; `None` where this kernel lacks it or keeps it otherwise.
    pub(crate) uring: Option<Uring>,
}

/// `struct task_struct`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) pid: i32,
    pub(crate) tgid: i32,
    pub(crate) files: i32,
    pub(crate) exit_code: i32,
    /// `ioac`: rchar, wchar, `read_bytes`, `write_bytes`; `None` where the kernel does not count.
    pub(crate) counted: Option<[i32; 4]>,
}

/// `struct file`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) inode: i32,
    pub(crate) mode: i32,
    pub(crate) flags: i32,
}

/// `struct inode`, and `s_dev` in its super block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inode {
    pub(crate) number: i32,
    pub(crate) mode: i32,
    pub(crate) size: i32,
    pub(crate) super_block: i32,
    pub(crate) device: i32,
    /// `i_mapping`, then `address_space.nrpages`.
    pub(crate) cached: (i32, i32),
}

/// `struct folio` and `struct address_space`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pages {
    pub(crate) flags: i32,
    /// The bit of `flags` that says that a folio has several pages.
    pub(crate) large: i32,
    /// The byte with the logarithm of their number.
    pub(crate) order: i32,
    pub(crate) mapping: i32,
    pub(crate) index: i32,
    pub(crate) host: i32,
}

/// `struct io_kiocb` and what read and write keep at its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uring {
    pub(crate) file: i32,
    pub(crate) opcode: i32,
    pub(crate) position: i32,
    pub(crate) length: i32,
    pub(crate) sync_offset: i32,
    pub(crate) sync_length: i32,
    /// Where the result lies in what the tracepoint of completion hands over.
    pub(crate) result: UringResult,
}

/// How a kernel tells the result of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UringResult {
    /// The fourth argument.
    Argument,
    /// At this offset of the third argument, a `struct io_uring_cqe`.
    Entry(i32),
}

impl Layout {
    /// Of the running kernel.
    pub(crate) fn read(btf: &Btf) -> Result<Self, Error> {
        let at = |path: &str| btf.offset(path);
        let counted = || {
            let [r, w, s, t] = ["rchar", "wchar", "read_bytes", "write_bytes"]
                .map(|name| at(&format!("task_struct.ioac.{name}")).ok());
            Some([r?, w?, s?, t?])
        };
        Ok(Self {
            task: Task {
                pid: at("task_struct.pid")?,
                tgid: at("task_struct.tgid")?,
                files: at("task_struct.files")?,
                exit_code: at("task_struct.exit_code")?,
                counted: counted(),
            },
            file: File {
                inode: at("file.f_inode")?,
                mode: at("file.f_mode")?,
                flags: at("file.f_flags")?,
            },
            inode: Inode {
                number: at("inode.i_ino")?,
                mode: at("inode.i_mode")?,
                size: at("inode.i_size")?,
                super_block: at("inode.i_sb")?,
                device: at("super_block.s_dev")?,
                cached: (at("inode.i_mapping")?, at("address_space.nrpages")?),
            },
            table: (at("files_struct.fdt")?, at("fdtable.fd")?),
            program_file: at("linux_binprm.file")?,
            pages: Self::pages(btf).ok(),
            uring: Self::uring(btf).ok(),
        })
    }

    fn pages(btf: &Btf) -> Result<Pages, Error> {
        Ok(Pages {
            flags: btf.offset("folio.flags")?,
            large: btf.value("pageflags", "PG_head")?.cast_signed(),
            order: btf.offset("folio._flags_1")?,
            mapping: btf.offset("folio.mapping")?,
            index: btf.offset("folio.index")?,
            host: btf.offset("address_space.host")?,
        })
    }

    fn uring(btf: &Btf) -> Result<Uring, Error> {
        let result = match btf.arguments_of("io_uring_complete") {
            Some(3) => UringResult::Entry(btf.offset("io_uring_cqe.res")?),
            _ => UringResult::Argument,
        };
        Ok(Uring {
            file: btf.offset("io_kiocb.file")?,
            opcode: btf.offset("io_kiocb.opcode")?,
            position: btf.offset("io_rw.kiocb.ki_pos")?,
            length: btf.offset("io_rw.len")?,
            sync_offset: btf.offset("io_sync.off")?,
            sync_length: btf.offset("io_sync.len")?,
            result,
        })
    }
}
