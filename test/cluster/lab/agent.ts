/** Runs in the namespace of one host and executes commands that it reads from its standard input as lines of JSON. */
import { createInterface } from 'node:readline';
import { IcmpWitness } from './icmp.ts';
import {
  ask,
  type Conversation,
  converse,
  type EchoServer,
  type Question,
  serve,
  type Transport,
} from './traffic.ts';

/** The commands of a host. */
export type Command =
  | {
      readonly op: 'serve';
      readonly name: string;
      readonly transport: Transport;
      readonly port: number;
      readonly address?: string;
    }
  | { readonly op: 'stop'; readonly transport: Transport; readonly port: number }
  | { readonly op: 'ask'; readonly question: Question }
  | { readonly op: 'open'; readonly question: Question }
  | { readonly op: 'say' | 'ended'; readonly conversation: number; readonly timeoutMs: number }
  | {
      readonly op: 'outcome';
      readonly conversation: number;
      readonly timeoutMs: number;
      readonly bytes?: number;
    }
  | { readonly op: 'hang-up'; readonly conversation: number };

export type Reply = { readonly id: number } & ({ readonly result: unknown } | { readonly error: string });

const servers = new Map<string, EchoServer>();
const conversations: Conversation[] = [];
const witness = await IcmpWitness.open();

async function execute(command: Command): Promise<unknown> {
  switch (command.op) {
    case 'serve':
      servers.set(
        `${command.transport}/${command.port}`,
        await serve(command.name, command.transport, command.port, command.address),
      );
      return null;
    case 'stop':
      await servers.get(`${command.transport}/${command.port}`)?.close();
      return null;
    case 'ask':
      return ask(command.question, witness);
    case 'open':
      return conversations.push(await converse(command.question)) - 1;
    case 'say':
      return (await conversations[command.conversation]?.ask(command.timeoutMs)) ?? null;
    case 'outcome':
      return (await conversations[command.conversation]?.outcome(command.timeoutMs, command.bytes)) ?? null;
    case 'ended':
      return (await conversations[command.conversation]?.ended(command.timeoutMs)) ?? null;
    case 'hang-up':
      conversations[command.conversation]?.close();
      return null;
  }
}

function reply(message: Reply): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

const input = createInterface({ input: process.stdin });
input.on('line', (line) => {
  const { id, command } = JSON.parse(line) as { id: number; command: Command };
  execute(command).then(
    (result) => reply({ id, result }),
    (error: unknown) => reply({ id, error: String(error) }),
  );
});
input.on('close', () => process.exit(0));
