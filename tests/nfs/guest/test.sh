# Puts the project where a user would have it installed, and runs pytest on what the arguments name.
set -eu
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
python3 -m pytest -p no:cacheprovider -p no:xdist -p no:cov -o addopts= --import-mode=importlib --timeout 900 "$@"
