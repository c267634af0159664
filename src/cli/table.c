#include "cli/table.h"

#include "base/check.h"

#include <stdlib.h>

void cli_table_begin(struct cli_table *table, const char *const *titles)
{
	*table = (struct cli_table){0};
	arena_init(&table->arena, 0);
	while (titles[table->columns] != NULL)
		table->columns++;
	for (size_t i = 0; i < table->columns; i++)
		cli_table_add(table, CLI_BOLD, str_of(titles[i]));
}

void cli_table_add(struct cli_table *table, const char *colour, struct str text)
{
	if (table->count == table->capacity) {
		table->capacity = table->capacity > 0 ? 2 * table->capacity : 64;
		table->cells = realloc(table->cells, table->capacity * sizeof(*table->cells));
		CHECK(table->cells);
	}
	struct buf harmless = {0};
	text_put_harmless(&harmless, text.length > 0 ? text : STR("-"));
	struct str copy = str_make(arena_copy(&table->arena, buf_c(&harmless), harmless.length), harmless.length);
	buf_free(&harmless);
	table->cells[table->count++] = (struct cli_cell){.text = copy, .colour = colour, .width = utf8_length(copy)};
}

static size_t column_width(const struct cli_table *table, size_t column)
{
	size_t width = 0;
	for (size_t i = column; i < table->count; i += table->columns) {
		if (table->cells[i].width > width)
			width = table->cells[i].width;
	}
	return width;
}

void cli_table_put(struct buf *out, const struct cli_table *table, bool colour)
{
	size_t *widths = calloc(table->columns, sizeof(*widths));
	CHECK(widths);
	for (size_t i = 0; i < table->columns; i++)
		widths[i] = column_width(table, i);
	for (size_t i = 0; i < table->count; i++) {
		const struct cli_cell *cell = &table->cells[i];
		bool last = i % table->columns == table->columns - 1, coloured = colour && *cell->colour != '\0';
		buf_put(out, str_of(coloured ? cell->colour : ""));
		buf_put(out, cell->text);
		buf_put(out, str_of(coloured ? CLI_PLAIN : ""));
		if (last)
			buf_put_char(out, '\n');
		else
			buf_put_repeat(out, ' ', widths[i % table->columns] - cell->width + 2);
	}
	free(widths);
}

void cli_table_free(struct cli_table *table)
{
	arena_free(&table->arena);
	free(table->cells);
	*table = (struct cli_table){0};
}
