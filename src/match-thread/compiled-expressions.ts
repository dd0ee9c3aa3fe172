/**
 * The expressions compiled last, each with its automaton once it was run. Of automata's tables there is one
 * for each, and no more.
 */

import { RE2JS } from 're2js';
import { AutomatonTables } from './automaton-tables.js';
import { ExpressionAutomaton } from './expression-automaton.js';
import { COMPILED_EXPRESSION_LIMIT } from './limits.js';

interface Compiled {
  readonly pattern: RE2JS;
  /** Made when it is first run. */
  automaton: ExpressionAutomaton | null;
}

export class CompiledExpressions {
  /** In order of use, the latest at the end. */
  readonly #compiled = new Map<string, Compiled>();
  readonly #spareTables: AutomatonTables[] = [];
  /** Tables that were ever made. */
  tablesMade = 0;

  /** Throws what re2js throws for an invalid expression. */
  pattern(expression: string): RE2JS {
    return this.#find(expression).pattern;
  }

  automaton(expression: string): ExpressionAutomaton {
    const known = this.#find(expression);
    known.automaton ??= new ExpressionAutomaton(known.pattern, this.#tables());
    return known.automaton;
  }

  forget(expression: string): void {
    const automaton = this.#compiled.get(expression)?.automaton;
    if (automaton != null) this.#spareTables.push(automaton.release());
    this.#compiled.delete(expression);
  }

  #find(expression: string): Compiled {
    // UTF-8 cannot hold a lone surrogate. Stored URLs have U+FFFD in its place, so the expression gets it
    // too.
    const known = this.#compiled.get(expression) ?? {
      pattern: RE2JS.compile(Buffer.from(expression).toString()),
      automaton: null,
    };
    this.#compiled.delete(expression);
    this.#compiled.set(expression, known);
    for (const oldest of this.#compiled.keys()) {
      if (this.#compiled.size <= COMPILED_EXPRESSION_LIMIT) break;
      this.forget(oldest);
    }
    return known;
  }

  #tables(): AutomatonTables {
    const spare = this.#spareTables.pop();
    if (spare !== undefined) return spare;
    this.tablesMade += 1;
    return new AutomatonTables();
  }
}
