#!/bin/sh
# Replaces itself by the binary in the platform package, which npm installs beside or below this one.
here=$(readlink -f "$0")
here=${here%/bin/*}
for binary in "$here/../@PLATFORM@/bin/wharf" "$here/node_modules/@PLATFORM@/bin/wharf"; do
    if [ -x "$binary" ]; then
        exec "$binary" "$@"
    fi
done
echo "error: the npm package @PLATFORM@ is not installed." >&2
echo "  hint: it is an optional dependency, for Linux only; install wharf-mcp again without --omit=optional" >&2
exit 1
