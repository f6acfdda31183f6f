import { runContract } from './suite.ts';

const isAway = 'this program makes the connections itself: while it is away there are none';
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
    C42: 'records of clients are in the memory of this program, and go with it',
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
    C53: 'userspace mode asks for no version of the kernel',
  },
  module: import.meta.url,
});
