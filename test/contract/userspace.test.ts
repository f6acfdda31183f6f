import { runContract } from './suite.ts';

const isAway = 'the program relays connections itself: while it does not run there are none';
const turns =
  'endpoints take turns, so the same clients in the same order get the same endpoints by chance, too';
const loopback = 'userspace mode serves node ports at loopback addresses like at any other (test/userspace)';

runContract({
  mode: 'userspace',
  clusters: [['IPv4'], ['IPv6'], ['IPv4', 'IPv6']],
  skip: {
    C18: 'userspace mode knows TCP and UDP',
    C37: 'userspace mode knows TCP and UDP',
    C39: turns,
    'affinity/per port': turns,
    'affinity/per service': turns,
    C42: 'affinity records are in the memory of the program and end with it',
    'connections/restart': isAway,
    'changes/while away': isAway,
    C54: `${isAway}; clean-up is tested in test/userspace`,
    'addresses/shadowed': 'userspace mode leaves a node port to the process that had it first',
    'C46 with all addresses': loopback,
    'addresses/loopback only': loopback,
    C47: loopback,
    C48: loopback,
    C49: loopback,
    C50: loopback,
    'loopback/follows endpoints': loopback,
    'loopback/affinity': loopback,
    C53: 'userspace mode does not check the kernel version',
  },
  module: import.meta.url,
});
