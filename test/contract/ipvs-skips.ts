const noServiceNetwork = 'ipvs mode knows no service network: addresses that no service has are routed';
const noLoopback = 'ipvs mode serves no node ports at loopback addresses (C46)';
const perAddress = 'records of clients belong to one address and port of a service';
const turns =
  'endpoints take turns, so the same clients in the same order get the same endpoints by chance, too';
const drained =
  'connections end with their service; test/ipvs/operations.test.ts tests which changes they survive';

/** Stories about features that ipvs mode, by design, does not have. */
export const ipvsSkips: Readonly<Record<string, string>> = {
  'C11 without ServiceCIDR': noServiceNetwork,
  'changes/service network': noServiceNetwork,
  'changes/second service network': noServiceNetwork,
  C39: 'an open connection keeps the record of its client',
  C41: perAddress,
  'affinity/udp': perAddress,
  'affinity/local list': perAddress,
  'sctp/affinity': perAddress,
  'affinity/per port': turns,
  'affinity/per service': turns,
  'affinity/off':
    'the kernel keeps the records of clients until they expire, and uses them when affinity is on again',
  'affinity/expires': 'the record of a client outlasts its last connection by two minutes (TIME_WAIT)',
  'affinity/returns': 'an endpoint that returns while it drains keeps its records: its clients return to it',
  C45: drained,
  'connections/client': drained,
  'connections/node': drained,
  'connections/remote': drained,
  'flows/drain': 'datagrams leave an endpoint as soon as it drains',
  C47: noLoopback,
  C48: noLoopback,
  C49: noLoopback,
  C50: noLoopback,
  'loopback/follows endpoints': noLoopback,
  'loopback/affinity': noLoopback,
  'local/beside the endpoint':
    'with policy Local and no endpoint on this node, ipvs mode sends clients elsewhere to all endpoints',
  C52: 'rules come back with the next full sync (test/ipvs/operations.test.ts)',
  C54: 'test/ipvs/operations.test.ts tests its clean-up, with servers, sets and devices',
  C53: 'ipvs mode does not check the kernel version',
};
