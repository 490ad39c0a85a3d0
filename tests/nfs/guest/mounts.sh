# Starts the NFS server of the test machine, with ext4 beneath, and mounts it twice for each version. Each mount has
# inodes, attributes and names of its own (nosharecache), as on two nodes. /c3 keeps attributes for a minute.
set -eu
mkdir -p /srv/x /a3 /b3 /c3 /a4 /b4
truncate -s 600M /disk.img
mke2fs -q -t ext4 /disk.img
mount -o loop /disk.img /srv/x
echo '/srv/x *(rw,sync,no_subtree_check,no_root_squash,insecure,fsid=7)' > /etc/exports
mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/sm
touch /var/lib/nfs/rmtab /var/lib/nfs/etab
mount -t nfsd nfsd /proc/fs/nfsd
# Else a server that was restarted serves nothing for 90 s.
echo 10 > /proc/fs/nfsd/nfsv4gracetime
echo 10 > /proc/fs/nfsd/nfsv4leasetime
nfsdcld
exportfs -ra
rpc.nfsd 8
rpc.mountd
mount -t nfs -o vers=3,tcp,nosharecache,lock localhost:/srv/x /a3
mount -t nfs -o vers=3,tcp,nosharecache,lock localhost:/srv/x /b3
mount -t nfs -o vers=3,tcp,nosharecache,lock,actimeo=60 localhost:/srv/x /c3
mount -t nfs -o vers=4.2,nosharecache localhost:/srv/x /a4
mount -t nfs -o vers=4.2,nosharecache localhost:/srv/x /b4
