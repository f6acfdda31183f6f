import type { ExplanationReport } from '../../inspect/api.ts';
import { joinHostPort } from '../../model/ip.ts';
import type { Paint } from '../terminal.ts';
import type { LiveReport } from './live.ts';

const outcomes = {
  answered: 'and the connection was accepted',
  refused: 'and it was refused',
  unanswered: 'and no answer came within a second',
  sent: 'and nobody waited for an answer',
} as const;

/** What became of the packet that was sent, step by step. */
export function liveText({ packet, planned }: ExplanationReport, live: LiveReport, paint: Paint): string {
  const { protocol, destination, port } = packet;
  const from = live.from ?? 'this node';
  const sent = `Sent: ${protocol} from ${from} to ${joinHostPort(destination, port)}, ${outcomes[live.outcome]}.\n`;
  const steps = live.steps.map((step) => `  ${step}\n`).join('');
  return `\n${sent}${verdictText(live, planned.fate.action === 'reject' ? 'rejected' : 'dropped', paint)}\n${steps}`;
}

/** A trace shows a rejected packet as a dropped one, and not the answer to it. */
function verdictText({ to, isDropped, differences }: LiveReport, ended: string, paint: Paint): string {
  const where = isDropped
    ? `The packet was ${ended}`
    : `The packet went to ${to ?? 'where no rule of nftables saw it'}`;
  if (differences === null) return `${where}; its rules do not show more than that.`;
  if (differences.length === 0) return paint('green', `${where}, as decided.`);
  return paint(
    'red',
    `WARNING: THE PACKET TOOK ANOTHER WAY\n${differences.map((text) => `  ! ${text}`).join('\n')}`,
  );
}
