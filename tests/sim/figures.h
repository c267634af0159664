/* Samples, and what is told of them. */
#ifndef SIM_FIGURES_H
#define SIM_FIGURES_H

#include <stddef.h>
#include <stdint.h>

struct sim_samples {
	double *at;
	size_t count;
	size_t capacity;
};

void sim_samples_free(struct sim_samples *samples);
void sim_samples_add(struct sim_samples *samples, double value);
/* The smallest value that the given share (0 to 1) of them does not exceed; 0 where there are none. Sorts them. */
double sim_samples_quantile(struct sim_samples *samples, double share);
double sim_samples_mean(const struct sim_samples *samples);

#endif
