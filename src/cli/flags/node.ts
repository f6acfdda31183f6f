import { bool, duration, int32 } from '../flag-types.ts';
import { type FlagValues, field, flag, type ProxyFlag } from './flag.ts';

const linux = (o: FlagValues) => o.draft.linux;
const conntrack = (o: FlagValues) => o.draft.linux.conntrack;

export const nodeFlags: readonly ProxyFlag[] = [
  flag(
    'conntrack-max-per-core',
    int32,
    field(conntrack, 'maxPerCore'),
    'Connections to track per CPU core; 0 keeps the limit of the system, and --conntrack-min has no effect.',
  ),
  flag(
    'conntrack-min',
    int32,
    field(conntrack, 'min'),
    'Least number of connections to track, regardless of the number of cores.',
  ),
  flag(
    'conntrack-tcp-timeout-established',
    duration,
    field(conntrack, 'tcpEstablishedTimeout'),
    'Idle time after which an established TCP connection is forgotten; 0 keeps the system value.',
  ),
  flag(
    'conntrack-tcp-timeout-close-wait',
    duration,
    field(conntrack, 'tcpCloseWaitTimeout'),
    'Time after which a TCP connection in CLOSE_WAIT is forgotten; 0 keeps the system value.',
  ),
  flag(
    'conntrack-tcp-be-liberal',
    bool,
    field(conntrack, 'tcpBeLiberal'),
    'Do not count TCP packets outside the window as invalid.',
  ),
  flag(
    'conntrack-udp-timeout',
    duration,
    field(conntrack, 'udpTimeout'),
    'Idle time after which a UDP exchange without an answer is forgotten; 0 keeps the system value.',
  ),
  flag(
    'conntrack-udp-timeout-stream',
    duration,
    field(conntrack, 'udpStreamTimeout'),
    'Idle time after which an answered UDP exchange is forgotten; 0 keeps the system value.',
  ),
  flag(
    'oom-score-adj',
    int32,
    field(linux, 'oomScoreAdj'),
    'oom_score_adj of this process, from -1000 (never killed when memory runs out) to 1000.',
  ),
];
