# Puts the project where a user would have it installed, and runs what the arguments give to pytest; without arguments
# the tests of NFS, and the contract of every store with its files on a mount of each version.
set -u
mkdir -p /opt/publish
tar -C /opt/publish -xf /host/project.tar
cat > /usr/bin/publish <<'P'
#!/usr/bin/python3
from publish.__main__ import run

run()
P
chmod 755 /usr/bin/publish
cd /opt/publish
python3 -m compileall -q src tests
export PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=/tmp/hypothesis CI=1
export PUBLISH_TEST_NFS=v3=/a3:/b3,v4.2=/a4:/b4,v3-actimeo-60=/a3:/c3 PUBLISH_TEST_NFS_EXPORT=/srv/x

failed=0
tests() {
  python3 -m pytest -q -p no:cacheprovider -p no:xdist -p no:cov -o addopts= --import-mode=importlib --timeout 900 --durations 8 -rfExX \
    "$@" || failed=1
}

if [ $# -gt 0 ]; then
  tests "$@"
else
  tests --confcutdir=tests/nfs tests/nfs
  for mount in /a3 /a4; do
    mkdir -p $mount/tmp
    echo "the contract, on $(grep " $mount " /proc/mounts | grep -o 'vers=[^,]*')"
    TMPDIR=$mount/tmp tests --basetemp=$mount/base -k 'not s3 and not fake' tests/contract tests/adapters/test_posix*.py
  done
fi
[ $failed = 0 ] && result=passed || result=failed
echo "$result on $(date -u +%F): Linux $(uname -r), nfsd over ext4, mounts with v3 and v4.2"
exit $failed
