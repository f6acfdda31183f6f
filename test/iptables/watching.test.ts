/** Detection of changes to our rules, on a real kernel, with both kinds of iptables. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, suite, test } from 'node:test';
import { Canary } from '../../src/backends/iptables/canary.ts';
import { type Changes, changesOf } from '../../src/backends/iptables/changes.ts';
import { DamageReporter } from '../../src/backends/iptables/damage-reporter.ts';
import { jumpStructure, jumps } from '../../src/backends/iptables/jumps.ts';
import { IptablesNode } from '../../src/backends/iptables/node.ts';
import { checkVersion } from '../../src/backends/iptables/preconditions.ts';
import { WrittenRules } from '../../src/backends/iptables/written-rules.ts';
import { ensureJumps, savedRule } from '../../src/backends/jumps.ts';
import { Commands } from '../../src/kernel/iptables/commands.ts';
import { programFile, runProgram } from '../../src/kernel/program.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { ignoredMetric } from '../../src/obs/metrics.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import { eventually } from '../eventually.ts';
import { flavourUnavailable, useFlavour } from './flavours.ts';
import { chainsOf, tableOf } from './normalise.ts';

const logger = silentLogger;
const clock = systemClock;

inNamespace(import.meta.url, () => {
  for (const flavour of ['nft', 'legacy'] as const) {
    suite(`with iptables-${flavour}`, { skip: flavourUnavailable(flavour) ?? false }, () => {
      let node: IptablesNode;
      let changes: Changes;
      let commands: Commands;
      let written: WrittenRules;
      let reporter: DamageReporter;
      let unwatch: () => void;
      let suspicions = 0;
      const reports: { objects: ReadonlyMap<string, number>; by: string }[] = [];

      before(async () => {
        useFlavour(flavour);
        const metrics = { ctStateInvalidDropped: ignoredMetric, localhostNodePortsAccepted: ignoredMetric };
        node = await IptablesNode.open(metrics, clock, logger);
      });
      after(() => node.close());
      beforeEach(async () => {
        changes = changesOf(flavour, node, { family: 'IPv4', clock, logger });
        commands = new Commands({ family: 'IPv4', run: runProgram, clock, logger, observer: changes });
        written = new WrittenRules((growth) => changes.explained(growth));
        suspicions = 0;
        reporter = new DamageReporter({
          written,
          commands,
          clock,
          logger,
          onDamage: (report) => reports.push(report),
        });
        await ensureJumps(commands, jumpStructure);
        written.expectJumps();
        unwatch = changes.watch({
          owns: (table, chain) => written.owns(table, chain),
          onDamage: (change) => reporter.damaged(change),
          onSuspicion: (by) => {
            suspicions++;
            reporter.suspect(by);
          },
        });
        await write(3);
      });
      afterEach(() => {
        unwatch();
        reporter.close();
        reports.length = 0;
        for (const table of ['nat', 'filter', 'mangle'])
          sh(`iptables -t ${table} -F; iptables -t ${table} -X`);
      });

      async function write(rules: number): Promise<void> {
        const lines = Array.from(
          { length: rules },
          (_, i) => `-A KUBE-SVC-A -p tcp --dport ${i + 1} -j RETURN\n`,
        );
        const input = ['*nat\n:KUBE-SVC-A - [0:0]\n', ...lines, 'COMMIT\n'];
        await written.during(input, (counted) => commands.restore(counted));
      }

      test('the iptables on the PATH has the requested flavour', async () => {
        assert.equal(await checkVersion(commands, programFile), flavour);
        assert.equal(await checkVersion(commands, () => undefined), flavour, 'by its version');
      });

      test('jumps are in upstream’s order, and restored at their place', async () => {
        const inputs = () => chainsOf(tableOf(sh('iptables-save'), 'filter')).get('INPUT') ?? [];
        const wanted = jumps
          .filter(({ table, from }) => table === 'filter' && from === 'INPUT')
          .map(savedRule);
        assert.deepEqual(inputs(), wanted.reverse());
        sh('iptables -D INPUT -j KUBE-FIREWALL');
        sh('iptables -A KUBE-NODEPORTS -p tcp --dport 1 -j ACCEPT');
        await ensureJumps(commands, jumpStructure);
        await ensureJumps(commands, jumpStructure);
        assert.deepEqual(inputs(), wanted);
        assert.match(sh('iptables -S KUBE-NODEPORTS'), /dport 1 -j ACCEPT/);
      });

      test('our own writes are not noticed', async () => {
        for (let i = 0; i < 5; i++) await write(10 + i);
        await commands.createChain('mangle', 'KUBE-PROXY-CANARY');
        await new Promise((resolve) => setTimeout(resolve, 600));
        assert.deepEqual(reports, []);
        assert.deepEqual([...(await written.differences(commands))], []);
      });

      test('our own writes explain how the tables grew, so that no dump has to', async () => {
        for (const rules of [10, 2, 7, 0, 5]) {
          await write(rules);
          await new Promise((resolve) => setTimeout(resolve, 300));
        }
        assert.equal(suspicions, 0);
      });

      test('a change by another program before we notice the end of our own one is noticed', async () => {
        const writing = write(5);
        await new Promise((resolve) => setTimeout(resolve, 2));
        // This blocks the process: our program ends, and the other one makes its change, before that is noticed.
        sh('sleep 0.3; iptables -w 5 -t nat -D KUBE-SVC-A 1');
        await writing;
        await eventually('notice', () => reports.length > 0, { withinMs: 5_000 });
      });

      test('a flush, a deleted rule, a deleted chain and a deleted jump are noticed', async () => {
        const changes = [
          'iptables -t nat -F',
          'iptables -t nat -D KUBE-SVC-A 2',
          'iptables -t nat -F KUBE-SVC-A; iptables -t nat -X KUBE-SVC-A',
          'iptables -t nat -D PREROUTING 1',
        ];
        for (const change of changes) {
          reports.length = 0;
          sh(change);
          await eventually(`notice of ${change}`, () => reports.length > 0);
          await ensureJumps(commands, jumpStructure);
          await write(3);
        }
      });

      test('changes by other programs to other chains are not noticed', async () => {
        sh(
          'iptables -t nat -N OTHER; iptables -t nat -I PREROUTING -j OTHER; iptables -t nat -A OTHER -j RETURN',
        );
        sh('iptables -t nat -F OTHER; iptables -t nat -D PREROUTING -j OTHER; iptables -t nat -X OTHER');
        await new Promise((resolve) => setTimeout(resolve, 800));
        assert.deepEqual(reports, []);
      });

      test('the canary reveals a flush of all tables', async () => {
        let lost = 0;
        const onLost = () => void lost++;
        const canary = new Canary({ commands, clock, logger, interval: 50, onPlanted() {}, onLost });
        canary.start();
        const isPlanted = () => /KUBE-PROXY-CANARY/.test(sh('iptables-save -t filter'));
        await eventually('canary', isPlanted);
        assert.equal(lost, 0);
        for (const table of ['mangle', 'nat', 'filter'])
          sh(`iptables -t ${table} -F; iptables -t ${table} -X`);
        await eventually('loss', () => lost === 1);
        await eventually('canary', isPlanted);
        await canary.close();
      });
    });
  }
});
