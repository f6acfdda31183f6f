#!/bin/bash
# First process of a node, in network, mount, process, host name and IPC namespaces of its own.
# usage: node-init.sh NAME FOLDER
set -eu
name=$1 folder=$2
hostname "$name"

# A new sysfs shows the network devices of this namespace; control groups are those of the machine.
mkdir -p "$folder/cgroup"
mount --rbind /sys/fs/cgroup "$folder/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$folder/cgroup" /sys/fs/cgroup
umount -l "$folder/cgroup"

# Nothing that the node writes reaches the machine, except below FOLDER.
for place in /run /var/lib /var/log; do mount -t tmpfs tmpfs "$place"; done
mkdir -p /run/lock /run/netns
for place in kubelet containerd; do
  mkdir -p "$folder/$place" "/var/lib/$place"
  mount --bind "$folder/$place" "/var/lib/$place"
done
# The kubelet and containers see each other's mounts.
mount --make-rshared /

for setting in net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv6.conf.default.accept_dad=0 \
  'net.ipv4.ping_group_range=0 2147483647'; do
  sysctl -qw "$setting"
done
# Kernels without bridge filtering lack these.
for family in iptables ip6tables; do
  file=/proc/sys/net/bridge/bridge-nf-call-$family
  if [ -e "$file" ]; then echo 1 > "$file"; fi
done

touch "$folder/ready"
# bash reaps the orphans of the node while it waits.
while :; do sleep 3600 & wait $! || true; done
