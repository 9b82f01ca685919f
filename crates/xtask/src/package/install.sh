#!/bin/sh
# Installs Wharf @VERSION@ into a prefix, and removes it again. Needs a POSIX shell, tar, gzip and sha256sum or shasum.
set -eu
umask 022

usage() {
    cat <<'END'
usage: install.sh [--prefix DIR] [--from DIR|URL] [--force]
       install.sh --uninstall [--prefix DIR]

  --prefix DIR     where to install: DIR/bin, DIR/share/man and so on; default: ~/.local
  --from DIR|URL   where the archive and SHA256SUMS are: a directory, file:// or https://;
                   default: the directory of this script
  --force          overwrite files that this script did not install
  --uninstall      remove everything that this script installed into the prefix
END
}

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

# Prints the name of the archive for this machine, without its extension.
archive_name() {
    case "$(uname -s)-$(uname -m)" in
    @ARCHIVES@) ;;
    *) fail "no archive for $(uname -s) on $(uname -m)" ;;
    esac
}

# Copies or downloads file $1 into the working directory.
fetch() {
    case $from in
    file://*) cp "${from#file://}/$1" "$work/$1" 2>/dev/null || fail "no $1 in $from" ;;
    https://*) download "$from/$1" "$work/$1" || fail "cannot download $from/$1" ;;
    *://*) fail "$from is neither https:// nor file://" ;;
    *) cp "$from/$1" "$work/$1" 2>/dev/null || fail "no $1 in $from; use --from DIR|URL" ;;
    esac
}

download() {
    if command -v curl >/dev/null; then
        curl --proto '=https' --tlsv1.2 --fail --silent --show-error --location \
            --max-filesize 268435456 --max-time 600 --output "$2" "$1"
    elif command -v wget >/dev/null; then
        wget --quiet --https-only --output-document="$2" "$1"
    else
        fail "curl or wget is needed to download"
    fi
}

# Compares file $1 with its line in SHA256SUMS.
check_sum() {
    expected=
    while read -r sum listed; do
        if [ "${listed#\*}" = "$1" ]; then expected=$sum; fi
    done <"$work/SHA256SUMS"
    [ -n "$expected" ] || fail "SHA256SUMS does not list $1"
    if command -v sha256sum >/dev/null; then
        actual=$(sha256sum <"$work/$1")
    elif command -v shasum >/dev/null; then
        actual=$(shasum -a 256 <"$work/$1")
    else
        fail "sha256sum or shasum is needed to check the archive"
    fi
    [ "${actual%% *}" = "$expected" ] ||
        fail "$1 does not match SHA256SUMS; nothing was installed. Download it again"
}

# Prints one line per file: mode, path in the archive, path in the prefix.
list_files() {
    echo "755 wharf bin/wharf"
    echo "755 install.sh share/wharf/install.sh"
    echo "644 completions/wharf.bash share/bash-completion/completions/wharf"
    echo "644 completions/_wharf share/zsh/site-functions/_wharf"
    echo "644 completions/wharf.fish share/fish/vendor_completions.d/wharf.fish"
    for page in "$unpacked"/man/man1/*; do
        echo "644 man/man1/${page##*/} share/man/man1/${page##*/}"
    done
    for document in LICENSE-APACHE LICENSE-MIT LICENSES-OF-OTHERS README.md CHANGELOG.md; do
        echo "644 $document share/doc/wharf/$document"
    done
}

# Succeeds if the manifest of an earlier installation lists file $1.
is_ours() {
    [ -f "$manifest" ] && grep -qxF "file $1" "$manifest"
}

# Creates directory $1 and its parents, and notes the new ones, parents first.
make_directory() {
    if [ -d "$1" ]; then return; fi
    case $1 in */*) make_directory "${1%/*}" ;; esac
    # The parent of a top directory is empty.
    if [ -n "$1" ]; then
        mkdir "$1" || fail "cannot create $1"
        created="$created$1
"
    fi
}

# Writes the manifest before the files, so that an interrupted installation can be removed.
write_manifest() {
    created=
    make_directory "$prefix/share/wharf"
    while read -r _mode _source path; do
        target=$prefix/$path
        make_directory "${target%/*}"
    done <"$work/files"
    {
        if [ -f "$manifest" ]; then grep '^directory ' "$manifest" || true; fi
        printf '%s' "$created" | sed 's/^/directory /'
        while read -r _mode _source path; do echo "file $path"; done <"$work/files"
    } >"$work/manifest"
    cp "$work/manifest" "$manifest.new"
    mv "$manifest.new" "$manifest"
}

install_files() {
    while read -r mode source path; do
        target=$prefix/$path
        # A rename replaces the file also while it runs.
        cp "$unpacked/$source" "$target.new" && chmod "$mode" "$target.new" && mv "$target.new" "$target" ||
            fail "cannot write $target; remove the rest with --uninstall"
    done <"$work/files"
}

# Removes files of the earlier version that this one does not have.
remove_old_files() {
    if [ ! -f "$work/old" ]; then return; fi
    while read -r kind path; do
        if [ "$kind" = file ] && ! is_ours "$path"; then rm -f "$prefix/$path"; fi
    done <"$work/old"
}

install() {
    archive=$(archive_name)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    fetch SHA256SUMS
    fetch "$archive.tar.gz"
    check_sum "$archive.tar.gz"
    tar -xzf "$work/$archive.tar.gz" -C "$work" || fail "cannot unpack $archive.tar.gz"
    unpacked=$work/$archive
    list_files >"$work/files"
    while read -r _mode _source path; do
        if [ -e "$prefix/$path" ] && [ "$force" = no ] && ! is_ours "$path"; then
            fail "$prefix/$path exists and was not installed by this script; use --force to overwrite it"
        fi
    done <"$work/files"
    if [ -f "$manifest" ]; then cp "$manifest" "$work/old"; fi
    write_manifest
    install_files
    remove_old_files
    "$prefix/bin/wharf" --version >/dev/null || fail "$prefix/bin/wharf does not start"
    echo "installed wharf @VERSION@: $prefix/bin/wharf"
    echo "undo: sh '$prefix/share/wharf/install.sh' --uninstall --prefix '$prefix'"
    case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) echo "next: add $prefix/bin to PATH" ;;
    esac
}

# Removes the listed files, then the created directories that are empty, children first.
uninstall() {
    [ -f "$manifest" ] || fail "no installation in $prefix"
    directories=
    while read -r kind path; do
        case $kind in
        file)
            case /$path/ in */../*) fail "$manifest is damaged" ;; esac
            rm -f "$prefix/$path" "$prefix/$path.new"
            ;;
        directory) directories="$path
$directories" ;;
        esac
    done <"$manifest"
    rm -f "$manifest"
    printf '%s' "$directories" | while read -r directory; do
        rmdir "$directory" 2>/dev/null || true
    done
    echo "removed wharf from $prefix; configuration and state of users are left alone"
}

main() {
    prefix=${HOME:+$HOME/.local} from=${0%/*} force=no action=install
    case $0 in */*) ;; *) from=. ;; esac
    while [ $# -gt 0 ]; do
        case $1 in
        --prefix | --from)
            [ $# -gt 1 ] || fail "$1 needs a value"
            if [ "$1" = --prefix ]; then prefix=$2; else from=${2%/}; fi
            shift
            ;;
        --force) force=yes ;;
        --uninstall) action=uninstall ;;
        -h | --help) usage && exit 0 ;;
        *) usage >&2 && fail "unknown argument: $1" ;;
        esac
        shift
    done
    case $prefix in
    '') fail "HOME is not set; use --prefix DIR" ;;
    /*) prefix=${prefix%/} ;;
    *) prefix=$(pwd)/${prefix%/} ;;
    esac
    manifest=$prefix/share/wharf/manifest
    "$action"
}

# The last line: a script that was cut off on its way does nothing.
main "$@"
