#include "sim/figures.h"

#include "base/check.h"

#include <stdlib.h>

void sim_samples_free(struct sim_samples *samples)
{
	free(samples->at);
	*samples = (struct sim_samples){0};
}

void sim_samples_add(struct sim_samples *samples, double value)
{
	if (samples->count == samples->capacity) {
		samples->capacity = samples->capacity ? samples->capacity * 2 : 64;
		samples->at = realloc(samples->at, samples->capacity * sizeof(*samples->at));
		CHECK(samples->at != NULL);
	}
	samples->at[samples->count++] = value;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

double sim_samples_quantile(struct sim_samples *samples, double share)
{
	if (samples->count == 0)
		return 0;
	qsort(samples->at, samples->count, sizeof(*samples->at), ascending);
	double rank = share * (double)samples->count;
	size_t at = (size_t)rank;
	if ((double)at == rank && at > 0)
		at--;
	return samples->at[at < samples->count ? at : samples->count - 1];
}

double sim_samples_mean(const struct sim_samples *samples)
{
	double sum = 0;
	for (size_t i = 0; i < samples->count; i++)
		sum += samples->at[i];
	return samples->count ? sum / (double)samples->count : 0;
}
