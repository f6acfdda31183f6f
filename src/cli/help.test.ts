import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allFlags } from './flags.ts';
import { helpText, type ListedGate } from './help.ts';

const gates: ListedGate[] = [
  { name: 'Zed', stage: 'BETA', default: true },
  { name: 'Alpha', stage: 'ALPHA', default: false },
  { name: 'Done', stage: 'GA', default: true },
  { name: 'Gone', stage: 'DEPRECATED', default: true },
];

const layouts = [undefined, 80, 160];

for (const width of layouts) {
  test(`at width ${width} every visible flag is shown once, and no other`, () => {
    const text = helpText({ gates, width });
    const shown = [...text.matchAll(/^ {2}(?:-\w, | {4})--([a-z-]+)/gm)].map((match) => match[1]);
    const visible = allFlags.filter((flag) => flag.deprecated === undefined).map((flag) => flag.name);
    assert.deepEqual(shown.toSorted(), visible.sort());
  });
}

for (const width of [80, 160]) {
  test(`nothing is wider than ${width}`, () => {
    for (const line of helpText({ gates, width }).split('\n')) assert.ok(line.length <= width, line);
  });
}

test('help begins with the description, then the usage', () => {
  assert.match(helpText({ gates }), /^kube-proxy makes .+\n\nUsage:\n {2}kube-proxy \[flags\]\n\n/s);
});

test('without a width, a flag has its type, description and default on one line', () => {
  const text = helpText({ gates });
  assert.match(text, /^ {6}--conntrack-min int32 {2,}\S.* \(default 131072\)$/m);
  assert.match(text, /^ {6}--logging-format string {2,}\S.* \(default "text"\)$/m);
  assert.match(text, /^ {6}--iptables-localhost-nodeports {2,}\S.* \(default true\)$/m);
  assert.match(text, /^ {2}-v, --v Level {2,}\S/m);
  assert.match(text, /^ {6}--version version\[=true\] {2,}\S/m);
  assert.match(text, /^ {6}--cleanup {2,}(?!.*default)/m);
});

test('every default other than zero is shown', () => {
  const text = helpText({ gates });
  for (const flag of allFlags.filter((f) => f.deprecated === undefined)) {
    const shown = new RegExp(`--${flag.name}(?: \\S+)? {2,}.*\\(default "?([^")]+)"?\\)$`, 'm').exec(
      text,
    )?.[1];
    const zero = ['', '0', '0s', '[]', 'false'].includes(flag.defaultText);
    assert.equal(shown, zero ? undefined : flag.defaultText, flag.name);
  }
});

test('alpha and beta gates are listed in order, others are not', () => {
  const lines = helpText({ gates, width: 80 })
    .split('\n')
    .map((line) => line.trim());
  const at = lines.indexOf('Alpha=true|false (ALPHA - default=false)');
  assert.ok(at > 0);
  assert.equal(lines[at + 1], 'Zed=true|false (BETA - default=true)');
  assert.doesNotMatch(lines.join('\n'), /Done|Gone/);
});
