/** Runs userspace mode's forwarder for one service, as the program does. Prints its port. */
import { openNodeForwarder } from '../../src/forwarder/open.ts';
import { systemClock } from '../../src/lib/clock.ts';

const { forwarder } = await openNodeForwarder({
  dialTimeouts: [250, 500, 1_000, 2_000],
  udpIdleMs: 250,
  clock: systemClock,
  report: ({ problem, detail, times }) => console.error(problem, detail, times),
});
const at = { ip: '127.0.0.1', port: Number(process.argv[2]) };
forwarder.setService('bench', { endpoints: [at], affinitySeconds: 0, choice: 'round-robin' });
const port = await forwarder.listen('bench', {
  service: 'bench',
  protocol: 'TCP',
  at: { ip: '127.0.0.1', port: 0 },
});
process.stdout.write(`${port}\n`);
process.stdin.resume();
