import type { DiffReport, FamilyComparison } from '../inspect/api.ts';
import { differenceLines, type Mark } from '../inspect/difference-text.ts';
import { count } from '../lib/count.ts';
import type { Paint, Style } from './terminal.ts';

const styles: Record<Mark, Style> = { '+': 'green', '-': 'red', '~': 'yellow' };

/** The differences between the kernel and the plans, by family and service. */
export function diffText(report: DiffReport, paint: Paint): string {
  const parts = report.families.map((look) => familyText(look, report, paint));
  const legend = '\n+ missing   - should not be there   ~ differs\n';
  return parts.join('\n') + (report.items.length > 0 ? legend : '');
}

function familyText(look: FamilyComparison, { items }: DiffReport, paint: Paint): string {
  const { family, error, settled, differences } = look;
  if (error !== null) return `${family}: ${paint('red', 'cannot be compared')}: ${error}\n`;
  if (differences === 0) return `${family}: ${paint('green', 'no difference')}\n`;
  const unsure = settled ? '' : ', perhaps only because a sync was running';
  const own = items.filter((item) => item.family === family);
  const lines = differenceLines(own, (mark, line) => paint(styles[mark], line));
  const text = lines.map((line) => (line === '' ? '\n' : `  ${line}\n`)).join('');
  return `${family}: ${paint('red', count(differences, 'difference'))}${unsure}\n${text}`;
}
