"""Paths of files as an operating system reads them, for rules about what may be opened.

Nothing here touches a disk: a path is resolved by its text alone. What the text does not decide
(a link of the kernel, a short name, a variable that a program may expand) is a ValueError, and a
rule that cannot be judged denies.
"""

from hansard_compiler.policy.file_paths.directory import Directory, is_under, parse_directory

__all__ = ["Directory", "is_under", "parse_directory"]
